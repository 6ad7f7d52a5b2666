import { afterEach, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { reaches, settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';

const setting = settingOfEachTest();
let turns = 0;
let counting: NodeJS.Immediate | undefined;
afterEach(() => clearImmediate(counting));

/** Counts the turns of the event loop from now on. */
function countTurns(): void {
  turns = 0;
  const next = () => {
    turns++;
    counting = setImmediate(next);
  };
  counting = setImmediate(next);
}

/** Keeps the thread busy, as a calculation does. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** Sums amounts. `during`: what its code does with each. */
function sums(name: string, during: (amount: string) => void) {
  return defineProjection({
    name,
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), count: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Credited(row, event) {
        during(event.payload.amount);
        return { count: (row?.count ?? 0) + 1 };
      },
    },
  });
}

const credited = (...amounts: readonly number[]) => ({
  family: account,
  streamId: 'ada',
  events: amounts.map((amount) => ({ type: 'Credited', payload: { amount: String(amount) } }) as const),
});

// A lease of ten seconds instead of thirty, which keeps this test below a minute. The first event alone takes longer.
const leaseSeconds = 10;
const longest = 13_000;

test.each([
  'advisory',
  'lease',
] as const)('an event that takes longer than an owner may be silent is passed by its owner, and others go on, with ownership %s', async (ownership) => {
  let afterQuick = 0;
  let isQuickDone = false;
  const slow = sums('slow', (amount) => {
    if (isQuickDone) afterQuick++;
    else block(Number(amount));
  });
  const quick = sums('quick', () => {});
  const config = defineConfig({ projections: [slow, quick], runtime: { ownership, leaseSeconds } });
  const runtime = await setting.start(config);
  await reaches(runtime, slow, 'active');
  await reaches(runtime, quick, 'active');
  const { position } = await runtime.log.append(credited(longest, ...Array.from({ length: 200 }, () => 100)));
  const slowEnds = runtime.positions.waitFor(slow, position, { timeout: 300_000 });
  await runtime.positions.waitFor(quick, position, { timeout: 300_000 });
  isQuickDone = true;
  await slowEnds;
  expect(afterQuick).toBeGreaterThan(0);
  const epochs = await runtime.db.query<{ epoch: bigint }>({ text: 'select epoch from refold.processors' });
  expect(epochs.map(({ epoch }) => Number(epoch))).toEqual([1, 1]);
  // The slow event was written before the rest of its page was folded.
  const batches = await runtime.db.query({ text: "select from refold.changes where name = 'slow'" });
  expect(batches.length).toBeGreaterThan(1);
  expect(setting.messages).toContainEqual(
    expect.stringMatching(/^slow@1: its code took 1\d{4} ms for 'Credited' at position 1 \(stream 'ada'\)/),
  );
});

test('everything else in the process goes on while many events are folded', async () => {
  const slow = sums('slow', () => block(8));
  const runtime = await setting.start(defineConfig({ projections: [slow] }));
  await reaches(runtime, slow, 'active');
  countTurns();
  await runtime.log.append(credited(...Array.from({ length: 100 }, () => 1)));
  const before = turns;
  await reaches(runtime, slow, 'active');
  expect(turns - before).toBeGreaterThan(100 / (50 / 8));
});
