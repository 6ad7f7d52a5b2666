import { setTimeout as pause } from 'node:timers/promises';
import type { RunResult } from '../scripts/run-result.ts';
import { createActions } from './actions.ts';
import { readEvidence } from './evidence.ts';
import { createFailOvers, type FailOver, type FailOvers } from './fail-overs.ts';
import { judges } from './judges/all.ts';
import { type ActionKind, describeAction, plan, type Step } from './plan.ts';
import { settle } from './settle.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

export interface RunOptions extends WorldOptions {
  /** How long faults are made; what it takes to come to rest and to judge is on top. */
  readonly minutes: number;
  /** Traffic goes on, without faults, until there are so many. */
  readonly leastAppends: number;
  /** Whether the server's files are kept. They are, too, where something was found. */
  readonly keepFiles: boolean;
  say(line: string): void;
}

/** Faults are made for so long at a time, then everything comes to rest and is judged. */
const roundSeconds = 40;
/** Of each promise that is broken, so many differences are shown. */
const shown = 5;

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, minutes, ownership, leaseSeconds, say } = options;
  say(
    `chaos: seed ${seed}, ${minutes} min, ownership '${ownership}'${ownership === 'lease' ? ` of ${leaseSeconds} s` : ''}`,
  );
  const world = await createWorld(options);
  const failOvers = createFailOvers(world.db, world.workers);
  const actions = createActions(world, failOvers);
  const steps = plan(seed);
  const done = new Map<ActionKind, number>();
  const broken = new Map<string, readonly string[]>();
  const rounds = Math.max(1, Math.round((minutes * 60) / roundSeconds));
  try {
    for (let round = 1; round <= rounds && broken.size === 0; round++) {
      world.traffic.resume();
      const end = Date.now() + (minutes * 60_000) / rounds;
      while (Date.now() < end && world.incidents.length === 0) {
        const { pauseMs, action }: Step = steps.next().value;
        await pause(pauseMs);
        const outcome = await actions.perform(action);
        done.set(action.kind, (done.get(action.kind) ?? 0) + 1);
        say(`${clock()}  ${describeAction(action)}${outcome === '' ? '' : ` → ${outcome}`}`);
      }
      if (round === rounds) while (world.ledger.entries.length < options.leastAppends) await pause(100);
      await actions.ended();
      for (const [promise, differences] of await judged(world, failOvers, say)) broken.set(promise, differences);
      say(`${clock()}  round ${round} of ${rounds}: ${broken.size === 0 ? 'all as promised' : 'BROKEN'}`);
    }
    await report({ world, done, measured: await failOvers.measured(), broken, say });
    // As the totals of the test runs want it: each promise is a test.
    return {
      passed: judges.length + 2 - broken.size,
      failed: broken.size,
      success: broken.size === 0,
      problems: [...broken].map(([promise, differences]) => ({
        name: promise,
        message: firstOf(differences).map(withoutItsStack).join('\n'),
      })),
    };
  } finally {
    const keepFiles = options.keepFiles || (broken.size > 0 && process.env.CI === undefined);
    if (keepFiles) say(`The server's files are kept in ${world.cluster.dataDirectory}.`);
    await world.close({ keepFiles });
  }
}

/** The promises that are broken, with what shows it. */
async function judged(
  world: World,
  failOvers: FailOvers,
  say: RunOptions['say'],
): Promise<Map<string, readonly string[]>> {
  const broken = new Map<string, readonly string[]>();
  const restless = await settle(world);
  if (restless.length > 0) broken.set('everything comes to rest once the faults end', restless);
  const unexplained = [...world.incidents, ...world.traffic.surprises];
  if (unexplained.length > 0) broken.set('no process ends and no append fails but by a fault', unexplained);
  const evidence = await readEvidence(world, await failOvers.measured());
  for (const { promise, differences } of judges) {
    const found = await differences(evidence);
    if (found.length > 0) broken.set(promise, found);
  }
  for (const [promise, differences] of broken) {
    say(`\nBROKEN: ${promise}: ${differences.length} difference${differences.length === 1 ? '' : 's'}`);
    for (const difference of firstOf(differences)) say(`  ${difference}`);
  }
  return broken;
}

function withoutItsStack(difference: string): string {
  return difference.replaceAll(/\n\s+at .*/g, '');
}

function firstOf(differences: readonly string[]): readonly string[] {
  return differences.slice(0, shown);
}

interface Report {
  readonly world: World;
  readonly done: ReadonlyMap<ActionKind, number>;
  readonly measured: readonly FailOver[];
  readonly broken: ReadonlyMap<string, readonly string[]>;
  readonly say: RunOptions['say'];
}

async function report({ world, done, measured, broken, say }: Report): Promise<void> {
  const { ledger, options } = world;
  const outcomes = (['acknowledged', 'refused', 'unknown'] as const).map(
    (outcome) => `${ledger.count(outcome)} ${outcome}`,
  );
  say(`\ndone: ${[...done].map(([kind, times]) => `${kind} × ${times}`).join(', ')}`);
  say(`appends: ${ledger.entries.length} (${outcomes.join(', ')})`);
  const [inline] = await world.db.query<{ lives: bigint }>({
    text: `select coalesce(pg_sequence_last_value('refold.inline_lives'), 0) as lives`,
  });
  say(`the inline projection joined the appends ${inline?.lives} times`);
  for (const cause of ['kill', 'stall'] as const) {
    const alone = measured.filter((one) => one.cause === cause && one.alone).map(({ milliseconds }) => milliseconds);
    const all = measured.filter((one) => one.cause === cause).map(({ milliseconds }) => milliseconds);
    say(`fail-over after a ${cause}: ${spread(alone)}; with other faults meanwhile too: ${spread(all)}`);
  }
  say('looked at:');
  for (const { promise } of judges) say(`  ${broken.has(promise) ? 'BROKEN' : 'held'}  ${promise}`);
  say(broken.size === 0 ? `all as promised, seed ${options.seed}` : `FAILED with seed ${options.seed}`);
}

function spread(milliseconds: readonly number[]): string {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  if (sorted.length === 0) return 'none';
  return `${sorted.length}, median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`;
}

const start = Date.now();

/** ` 12.3 s` since the start */
function clock(): string {
  return `${((Date.now() - start) / 1_000).toFixed(1).padStart(6)} s`;
}
