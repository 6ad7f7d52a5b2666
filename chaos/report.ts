import type { Answer } from './clients/told.ts';
import type { FailOver } from './fail-overs.ts';
import type { Judge } from './judges/judge.ts';
import type { ActionKind } from './plan.ts';
import type { World } from './world.ts';

/** The results of a run. */
export interface Found {
  readonly done: Map<ActionKind, number>;
  /** The broken promises, with the differences. */
  readonly broken: Map<string, readonly string[]>;
  readonly told: Told;
}

/** Counts of the responses that clients got. */
export interface Told {
  add(answers: readonly Answer[]): void;
  /** By kind of request and by code, the most frequent first. */
  lines(): readonly string[];
}

const shown = 5;

export function createTold(): Told {
  const asked = new Map<string, number>();
  const codes = new Map<string, number>();
  const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  return {
    add(answers) {
      for (const answer of answers) {
        count(asked, answer.asked.kind);
        for (const code of answer.response.codes) count(codes, code);
      }
    },
    lines: () => [`client operations: ${listed(asked)}`, `errors that clients got: ${listed(codes)}`],
  };
}

export interface Report extends Found {
  readonly world: World;
  readonly judges: readonly Judge[];
  readonly measured: readonly FailOver[];
  say(line: string): void;
}

export async function report({ world, done, measured, judges, broken, told, say }: Report): Promise<void> {
  const { ledger, options, clients, db } = world;
  const outcomes = (['acknowledged', 'refused', 'unknown'] as const).map(
    (outcome) => `${ledger.count(outcome)} ${outcome}`,
  );
  say(`\ndone: ${listed(done)}`);
  say(`appends: ${ledger.entries.length} (${outcomes.join(', ')}), the tail was lost ${ledger.cuts.length} times`);
  for (const line of told.lines()) say(line);
  const connections = clients.feeds.reduce((sum, feed) => sum + feed.connections, 0);
  const reasons = new Map<string, number>();
  for (const { reason } of clients.feeds.flatMap(({ resets }) => resets))
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  say(`${clients.feeds.length} feeds connected ${connections} times; resets: ${listed(reasons)}`);
  const [inline] = await db.query<{ lives: bigint }>({
    text: `select coalesce(pg_sequence_last_value('refold.inline_lives'), 0) as lives`,
  });
  say(`the inline projection joined the appends ${inline?.lives} times`);
  const caughtUp = world.storeOutages.map(({ caughtUpMs }) => caughtUpMs);
  say(`the store was away without another fault; its versions had caught up after: ${spread(caughtUp)}`);
  for (const cause of ['kill', 'stall', 'cut off'] as const) {
    const alone = measured
      .filter((one) => one.cause === cause && one.alone)
      .map(({ milliseconds, cpuWaitMilliseconds }) => milliseconds - cpuWaitMilliseconds);
    const all = measured.filter((one) => one.cause === cause).map(({ milliseconds }) => milliseconds);
    say(
      `fail-over after a ${cause}, without the time in which no processor was free: ${spread(alone)}; in all, with other faults meanwhile too: ${spread(all)}`,
    );
  }
  say('promises:');
  for (const { promise } of judges) say(`  ${broken.has(promise) ? 'BROKEN' : 'held'}  ${promise}`);
  say(broken.size === 0 ? `all promises held, seed ${options.seed}` : `FAILED with seed ${options.seed}`);
  // Printed at the end too: in a long output, a reader sees only the last lines.
  for (const [promise, differences] of broken)
    for (const line of [`BROKEN: ${promise}`, ...shownOf(differences)]) say(line);
}

/** The first differences that show a broken promise. */
export function shownOf(differences: readonly string[]): readonly string[] {
  return differences.slice(0, shown).map((difference) => `  ${difference}`);
}

function listed(counts: ReadonlyMap<string, number>): string {
  const parts = [...counts].toSorted(([, a], [, b]) => b - a).map(([name, times]) => `${name} × ${times}`);
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

function spread(milliseconds: readonly number[]): string {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  if (sorted.length === 0) return 'none';
  return `${sorted.length}, median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`;
}
