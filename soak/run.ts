import { setTimeout as pause } from 'node:timers/promises';
import { credits } from '../chaos/domain.ts';
import { createLedger } from '../chaos/ledger.ts';
import { declaredSchema } from '../src/cli/setup/declared-schema.ts';
import { discardDeadLetters, listDeadLetters } from '../src/runtime/dead-letters/dead-letters.ts';
import { createDatabase } from '../src/store/postgres/database.ts';
import { seeded } from '../test/support/account-traffic.ts';
import app, { projectionsOf } from './app.ts';
import { createBalancer } from './balancer.ts';
import type { Verdict } from './bounds.ts';
import { createClientRecord } from './client-record.ts';
import { fillDocumentCaches } from './fill-document-caches.ts';
import { createFleet } from './fleet.ts';
import { createPopulation, startWatchers } from './population.ts';
import { reportClients, reportFigures } from './report.ts';
import { createRest } from './rest.ts';
import { startSampler } from './sampler.ts';
import { createSession } from './session.ts';
import { createRandomOperations, setThings } from './thing-client.ts';
import { createWorld, type World } from './world.ts';

export interface RunOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Steps of clients per second, all together; a step is one to three requests. */
  readonly rate: number;
  readonly through: 'direct' | 'pooler' | 'both';
  readonly keepFiles: boolean;
  say(line: string): void;
}

const minute = 60_000;
/** How often clients are paused and everything is compared. */
const restEveryMs = 5 * minute;
/** A short run includes a deployment, too. */
const deployEveryMs = (half: number) => Math.min(minute, half / 3);
const compared = 60;

/** Returns the problems as sentences. */
export async function run({ minutes, seed, rate, through, keepFiles, say }: RunOptions): Promise<readonly string[]> {
  const began = performance.now();
  const now = () => performance.now() - began;
  const clock = (line: string) => say(`${(now() / 1000).toFixed(1).padStart(7)} s  ${line}`);
  const halves = through === 'both' ? (['direct', 'pooler'] as const) : ([through] as const);
  say(`soak: ${minutes} min (${halves.join(', then ')}), seed ${seed}, ${rate} steps a second`);

  const problems: string[] = [];
  const incident = (sentence: string) => {
    problems.push(sentence);
    clock(`WRONG ${sentence}`);
  };
  const logged = new Map<string, number>();
  const world = await createWorld();
  const record = createClientRecord(now, clock);
  const balancer = createBalancer(record);
  const onLog = (process: string, level: number, message: string) => {
    // Without the numbers that differ between processes.
    const text = message.replaceAll(/\d+/g, '…').replaceAll(/'[^']*…[^']*'/g, '…');
    const line = `${level >= 50 ? 'error' : 'warn'} of ${process.replace(/[ .][\d.]+$/, 's')}: ${text}`;
    const times = (logged.get(line) ?? 0) + 1;
    logged.set(line, times);
    if (times === 1) clock(`${process} logs: ${message.slice(0, 300)}`);
  };
  const fleet = createFleet({ db: world.db, balancer, onLog, onIncident: incident });
  const ledger = createLedger();
  const clients = createPopulation({ balancer, record, ledger, seed, rate });
  const session = createSession('comparer', balancer, record);
  const watchers = startWatchers(balancer, record);
  const rest = createRest({
    ...world,
    ledger,
    projections: projectionsOf({ lowest: 1, highest: 1, pooled: false }),
    declares: fleet.declares,
    sdl: declaredSchema(app),
    session,
    operations: createRandomOperations(session, seed * 100_000 + 90_000),
    watchers,
    compared,
  });
  const growing: Verdict[] = [];

  async function atRest(): Promise<void> {
    await clients.hold();
    const found = await rest.look();
    clock(found.length === 0 ? 'at rest: no differences' : `at rest: ${found.length} differences`);
    for (const one of found) incident(one);
  }

  async function half(kind: 'direct' | 'pooler'): Promise<void> {
    const pooled = kind === 'pooler';
    const url = pooled ? (await world.pooler()).through(world.url) : world.url;
    await fleet.start(url, pooled);
    clock(`${kind}: ${fleet.processes.map(({ name }) => name).join(', ')} run`);
    if (ledger.entries.length === 0) await setThings(session, seeded(seed));
    for (const { role, url: at } of fleet.steady) if (role === 'gateway') await fillDocumentCaches(at, seed);
    clients.resume();
    const sampler = startSampler({
      ...{ ...world, now, processes: () => fleet.processes, steady: () => fleet.steady },
      onMissed: clock,
    });
    const length = (minutes * minute) / halves.length;
    const end = now() + length;
    let nextRest = now() + restEveryMs;
    for (let next = now() + deployEveryMs(length); next < end; next = Math.max(now(), next + deployEveryMs(length))) {
      await pause(Math.max(0, next - now()));
      clock(`${await fleet.roll()}; ${await discard(world)} dead letters discarded; ${ledger.entries.length} commands`);
      if (now() < nextRest) continue;
      await atRest();
      clients.resume();
      nextRest = now() + restEveryMs;
    }
    await pause(Math.max(0, end - now()));
    await atRest();
    const series = await sampler.end(record.latencies);
    growing.push(...reportFigures(`figures, ${kind}`, series, say));
    // While there are gateways: a client that waits for a ready gateway would wait forever.
    if (kind === halves.at(-1)) await Promise.all(watchers.map((watcher) => watcher.stop()));
    await fleet.stop();
  }

  try {
    for (const kind of halves) await half(kind);
  } finally {
    await clients.stop();
    fleet.kill();
    balancer.close();
    await world.close({ keepFiles });
    if (keepFiles) say(`The server's files are kept in ${world.cluster.dataDirectory}.`);
  }
  reportClients(record, say);
  say('\nlogged');
  for (const [line, times] of logged) say(`  ${times} × ${line.slice(0, 300)}`);
  return [
    ...problems,
    ...record.wrong,
    ...[...record.failures].map(([name, { times }]) => `${times} requests failed: ${name}`),
    ...growing.map(({ series }) => `${series.name} grows faster than it may`),
  ];
}

/** What an operator does now and then: discards dead letters, so their rows continue without those events. */
async function discard({ url, log }: World): Promise<number> {
  // The session's name shows the judges what was done.
  const db = createDatabase({ url, maxConnections: 1, applicationName: 'chaos discards' });
  try {
    const options = { db, log, readSchema: 'read_models', projection: credits };
    if ((await listDeadLetters(options)).length === 0) return 0;
    return (await discardDeadLetters(options, { actor: 'soak', reason: 'poison' })).discarded;
  } finally {
    await db.close();
  }
}
