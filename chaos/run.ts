import { setTimeout as pause } from 'node:timers/promises';
import type { RunResult } from '../scripts/run-result.ts';
import { type Actions, createActions } from './actions.ts';
import { readEvidence } from './evidence.ts';
import { createFailOvers, type FailOvers } from './fail-overs.ts';
import { judges as allJudges } from './judges/all.ts';
import type { Judge } from './judges/judge.ts';
import { type ActionKind, describeAction, plan, type Step } from './plan.ts';
import { createTold, type Found, report, shownOf } from './report.ts';
import { settle } from './settle.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

export interface RunOptions extends Omit<WorldOptions, 'smallDisk'> {
  /** Actions that are left out, and judges that are left out, by name. */
  readonly without: { readonly actions: ReadonlySet<ActionKind>; readonly judges: ReadonlySet<string> };
  /** How long faults are injected. Recovery and checks come on top. */
  readonly minutes: number;
  /** Traffic continues without faults until the log has this many appends. */
  readonly leastAppends: number;
  /** Whether the server's files are kept. They are also kept if a promise is broken. */
  readonly keepFiles: boolean;
  say(line: string): void;
}

/** The parts of a run, and its results so far. */
interface Running extends Found {
  readonly world: World;
  readonly failOvers: FailOvers;
  readonly judges: readonly Judge[];
  readonly say: RunOptions['say'];
}

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, minutes, ownership, leaseSeconds, without, say } = options;
  say(
    `chaos: seed ${seed}, ${minutes} min, ownership '${ownership}'${ownership === 'lease' ? ` of ${leaseSeconds} s` : ''}`,
  );
  const world = await createWorld({ ...options, smallDisk: !without.actions.has('disk full') });
  const { home, apart } = world.stores.stores;
  const failOvers = createFailOvers([home, ...apart], world.workers);
  const judges = allJudges.filter(({ name }) => !without.judges.has(name));
  const running: Running = { world, failOvers, judges, say, done: new Map(), broken: new Map(), told: createTold() };
  const { broken } = running;
  const actions = createActions(world, failOvers);
  const steps = plan(seed, leftOut(world, without, say));
  const rounds = Math.max(1, Math.round((minutes * 60) / roundSeconds(minutes)));
  try {
    for (let round = 1; round <= rounds && broken.size === 0; round++) {
      await makeFaults(running, actions, steps, (minutes * 60_000) / rounds);
      if (round === rounds) while (world.ledger.entries.length < options.leastAppends) await pause(100);
      await actions.ended();
      for (const [promise, differences] of await judged(running)) broken.set(promise, differences);
      say(`${clock()}  round ${round} of ${rounds}: ${broken.size === 0 ? 'all promises held' : 'BROKEN'}`);
    }
    await report({ ...running, measured: await failOvers.measured() });
    // For the totals of CI, each promise counts as a test.
    return {
      passed: judges.length + 2 - broken.size,
      failed: broken.size,
      success: broken.size === 0,
      problems: [...broken].map(([promise, differences]) => ({
        name: promise,
        message: shownOf(differences).map(withoutItsStack).join('\n'),
      })),
    };
  } finally {
    const keepFiles = options.keepFiles || (broken.size > 0 && process.env.CI === undefined);
    if (keepFiles) {
      const { server, storeServer } = world;
      say(`The servers' files are kept in ${server.dataDirectory} and ${storeServer.dataDirectory}.`);
    }
    await world.close({ keepFiles });
  }
}

/** Faults last this long, then everything comes to rest and is judged. Long runs do so less often, because the judges read the whole log. */
function roundSeconds(minutes: number): number {
  return minutes <= 10 ? 40 : 600;
}

/** The actions that are left out: those asked for, and those that this machine does not permit. */
function leftOut({ server }: World, { actions, judges }: RunOptions['without'], say: RunOptions['say']) {
  const kinds = new Set(actions);
  if (typeof server.disk === 'string' && !kinds.has('disk full')) {
    say(`This machine has no disk that can be full: ${server.disk}`);
    kinds.add('disk full');
  }
  for (const name of [...kinds, ...judges]) say(`left out: ${name}`);
  return kinds;
}

async function makeFaults(
  { world, done, say }: Running,
  actions: Actions,
  steps: Generator<Step, never>,
  milliseconds: number,
): Promise<void> {
  world.traffic.resume();
  world.clients.resume();
  const end = Date.now() + milliseconds;
  while (Date.now() < end && world.incidents.length === 0) {
    const { pauseMs, action }: Step = steps.next().value;
    await pause(pauseMs);
    const outcome = await actions.perform(action);
    done.set(action.kind, (done.get(action.kind) ?? 0) + 1);
    say(`${clock()}  ${describeAction(action)}${outcome === '' ? '' : ` → ${outcome}`}`);
  }
}

/** The broken promises, with the differences. */
async function judged(run: Running): Promise<Map<string, readonly string[]>> {
  const { world, failOvers, judges, say } = run;
  const broken = new Map<string, readonly string[]>();
  const restless = await settle(world);
  if (restless.length > 0) {
    broken.set('everything comes to rest once the faults end', restless);
    for (const line of lastPrinted(world)) say(line);
  }
  const unexplained = [...world.incidents, ...world.traffic.surprises, ...world.clients.surprises];
  if (unexplained.length > 0)
    broken.set('no process ends, and no append or client fails, except by a fault', unexplained);
  const { home, apart } = world.stores.stores;
  const evidence = await readEvidence({ ...world, databases: [home, ...apart] }, await failOvers.measured());
  for (const { promise, differences } of judges) {
    const found = await differences(evidence);
    if (found.length > 0) broken.set(promise, found);
  }
  run.told.add(evidence.answers);
  world.clients.forget();
  for (const [promise, differences] of broken) {
    say(`\nBROKEN: ${promise}: ${differences.length} difference${differences.length === 1 ? '' : 's'}`);
    for (const line of shownOf(differences)) say(line);
  }
  return broken;
}

/** The last warnings of each process: they often show the reason. */
function lastPrinted({ workers, gateways }: World): readonly string[] {
  return [...workers, ...gateways].flatMap(({ process }) =>
    process ? [`\n${process.name} (${process.owner}) printed last:`, ...process.said.slice(-20)] : [],
  );
}

function withoutItsStack(difference: string): string {
  return difference.replaceAll(/\n\s+at .*/g, '');
}

const start = Date.now();

/** ` 12.3 s` since the start */
function clock(): string {
  return `${((Date.now() - start) / 1_000).toFixed(1).padStart(6)} s`;
}
