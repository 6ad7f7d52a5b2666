import { expect, test } from 'vitest';
import type { RuntimeOptions } from '../../../src/config/runtime-options.ts';
import { type ActivationOptions, defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import { discardDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import type { VersionStatus } from '../../../src/runtime/monitoring/status.ts';
import { acceptRebuild, cancelRebuild, requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, openingsV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;
const readSchema = 'read_models';
const byAnn = { actor: 'ann', reason: 'test' };

const start = (...projections: readonly Projection[]) => startWith({}, ...projections);

function startWith(options: RuntimeOptions, ...projections: readonly Projection[]): Promise<Runtime> {
  return setting.start(defineConfig({ projections, events: [account], runtime: options }));
}

/** Counts the credits of accounts, except those that are `bad`. */
function credits(
  version: number,
  bad: (event: { streamId: string; amount: string }) => boolean,
  more?: ActivationOptions,
  options: { onError?: 'skip'; partitions?: number; mode?: 'inline' } = {},
) {
  return defineProjection({
    name: 'credits',
    version,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, event) => {
        if (bad({ streamId: event.streamId, amount: event.payload.amount })) throw new Error('bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
    onError: 'dead-letter',
    ...(more ? { activation: more } : {}),
    ...options,
  });
}

const nothing = () => false;
const thirteen = ({ amount }: { amount: string }) => amount === '13';

async function status(runtime: Runtime, version: number): Promise<VersionStatus | undefined> {
  return (await runtime.status()).find((one) => one.version === version);
}

const becomes = (runtime: Runtime, version: number, state: string) =>
  until(async () => (await status(runtime, version))?.state === state);

async function append(runtime: Runtime, streamId: string, ...amounts: readonly string[]): Promise<void> {
  const events = amounts.map((amount) => ({ type: 'Credited', payload: { amount } }) as const);
  const { position } = await runtime.log.append({ family: account, streamId, events });
  await until(async () => ((await status(runtime, 1))?.position ?? 0n) >= position);
}

/** credits@1, which has folded everything of three accounts: three events each, the second of which is bad for others. */
async function served(bad: Parameters<typeof credits>[1] = nothing): Promise<void> {
  const runtime = await start(credits(1, bad));
  for (const id of ['a', 'b', 'c']) await append(runtime, id, '1', '13', '2');
  await stop(runtime);
}

test('dead letters that the answering version does not have hold a version at ready, until they are gone', async () => {
  await served();
  const next = credits(2, thirteen);
  const runtime = await start(credits(1, nothing), next);
  const reason = `6 dead letters that credits@1 does not have; see 'refold dead-letters list credits@2'.`;
  await until(async () => (await status(runtime, 2))?.heldReason === reason);
  expect(await status(runtime, 2)).toMatchObject({ state: 'ready', deadLetters: 6 });
  await until(() => setting.messages.includes(`credits@2 is held at ready: ${reason}`));

  const options = { db: runtime.db, log: runtime.log, readSchema, projection: next };
  await discardDeadLetters(options, byAnn, 'a');
  await until(async () => (await status(runtime, 2))?.heldReason?.startsWith('4 dead letters that'));
  await discardDeadLetters(options, byAnn);
  await becomes(runtime, 2, 'active');
  expect((await status(runtime, 2))?.heldReason).toBeNull();
});

test.each([
  {},
  { partitions: 2 },
] as const)('a version does not answer before it has processed all that the log held when it came near its end: %o', async (options) => {
  await served();
  const last = ({ amount, streamId }: { amount: string; streamId: string }) => thirteen({ amount }) && streamId === 'c';
  // Pages of three, so a version comes near the end of this short log before it reaches the event.
  const runtime = await startWith({ pageSize: 3 }, credits(1, nothing), credits(2, last, {}, options));
  await until(async () => (await status(runtime, 2))?.state !== 'building');
  expect(await status(runtime, 2)).toMatchObject({ state: 'ready', deadLetters: 2 });
});

test('an operator can activate a version despite its dead letters', async () => {
  await served();
  const runtime = await start(credits(1, nothing), credits(2, thirteen));
  await until(async () => (await status(runtime, 2))?.heldReason);
  await runtime.lifecycle.activate('credits', 2, byAnn);
  expect(await status(runtime, 2)).toMatchObject({ state: 'active', heldReason: null });
});

test('dead letters that the answering version has too, up to the declared number, hold nothing', async () => {
  await served(thirteen);
  const same = await start(credits(1, thirteen), credits(2, thirteen));
  await becomes(same, 2, 'active');
  await stop(same);
  const bad = ({ streamId, amount }: { streamId: string; amount: string }) => thirteen({ amount }) || streamId === 'a';
  const held = await start(credits(1, thirteen), credits(2, thirteen), credits(3, bad, { deadLetters: 0 }));
  await until(async () =>
    (await status(held, 3))?.heldReason?.startsWith('1 dead letter that credits@2 does not have'),
  );
  await stop(held);
  const allowed = await start(credits(1, thirteen), credits(2, thirteen), credits(3, bad, { deadLetters: 1 }));
  await becomes(allowed, 3, 'active');
  await stop(allowed);
  const any = await start(
    credits(1, thirteen),
    credits(2, thirteen),
    credits(4, () => true, { deadLetters: 'any' }),
  );
  await becomes(any, 4, 'active');
});

test('a first version, which replaces no other, is not held for its dead letters', async () => {
  const other = await start(openingsV1);
  await append(other, 'a', '1', '13', '2');
  await stop(other);
  const runtime = await start(openingsV1, credits(1, thirteen));
  await until(async () => (await runtime.status()).find(({ name }) => name === 'credits')?.state === 'active');
});

test('a rebuild with dead letters that the served table does not have waits until it is accepted or cancelled', async () => {
  await served();
  const worse = credits(1, thirteen);
  const runtime = await start(worse);
  const { db } = runtime;
  const heldReason = async () => (await status(runtime, 1))?.rebuild?.heldReason;
  await requestRebuild(db, worse, readSchema, byAnn);
  expect(await until(heldReason)).toBe(
    "6 dead letters that the table which answers does not have. 'refold rebuild credits@1 --accept-dead-letters' lets it take over all the same, 'refold rebuild credits@1 --cancel' ends it.",
  );
  expect(await status(runtime, 1)).toMatchObject({ state: 'active', deadLetters: 0 });
  // It follows the log meanwhile.
  await append(runtime, 'd', '1');
  const head = await runtime.log.head();
  await until(async () => (await status(runtime, 1))?.rebuild?.checkpoint === head);
  await cancelRebuild(db, 'credits', 1, readSchema, byAnn);
  await expect(acceptRebuild(db, 'credits', 1, byAnn)).rejects.toMatchObject({ code: 'INVALID_TRANSITION' });

  await requestRebuild(db, worse, readSchema, byAnn);
  await until(heldReason);
  // Requested again before its owner has noticed the cancellation: a table of the same name, in another rebuild.
  for (let again = 0; again < 5; again++) {
    await cancelRebuild(db, 'credits', 1, readSchema, byAnn);
    await requestRebuild(db, worse, readSchema, byAnn);
    await until(heldReason);
  }
  await acceptRebuild(db, 'credits', 1, byAnn);
  await until(async () => (await status(runtime, 1))?.rebuild === null);
  expect(await status(runtime, 1)).toMatchObject({ state: 'active', deadLetters: 6 });
});

test('a version rebuilt in place with new dead letters is held, and the version that answered meanwhile continues', async () => {
  await served();
  const two = await start(credits(1, nothing), credits(2, nothing));
  await becomes(two, 2, 'active');
  await stop(two);
  const worse = credits(2, thirteen);
  const runtime = await start(credits(1, nothing), worse);
  await rebuildInPlace({ db: runtime.db, log: runtime.log, readSchema, projection: worse }, byAnn);
  await until(async () => (await status(runtime, 2))?.heldReason?.startsWith('6 dead letters that credits@1'));
  await runtime.versions.refresh();
  expect(runtime.versions.current().served.get('credits')).toMatchObject({ active: true, projection: { version: 1 } });
});

test.each([
  { partitions: 2 },
  { mode: 'inline' },
] as const)('skipped events that the answering version has folded hold a version at ready: %o', async (options) => {
  await served();
  const runtime = await start(credits(1, nothing), credits(2, thirteen, {}, { onError: 'skip', ...options }));
  const heldReason =
    "3 skipped events (the first at position 2) that credits@1 does not have. 'refold activate credits@2' activates it without them.";
  await until(async () => (await status(runtime, 2))?.heldReason === heldReason);
  expect(await status(runtime, 2)).toMatchObject({ state: 'ready', eventsSkipped: 3n, deadLetters: 0 });
  await runtime.lifecycle.activate('credits', 2, byAnn);
  // Events that an active version skips, too, do not count as new.
  await append(runtime, 'd', '13');
  await stop(runtime);
  const next = await start(
    credits(2, thirteen, {}, { onError: 'skip', ...options }),
    credits(3, thirteen),
    credits(4, ({ streamId }) => streamId === 'a', { deadLetters: 2 }, { onError: 'skip' }),
  );
  await becomes(next, 3, 'active');
  await becomes(next, 4, 'active');
});

test('a rebuild that skips what the served table has folded waits', async () => {
  await served(({ amount, streamId }) => thirteen({ amount }) && streamId === 'a');
  const worse = credits(1, thirteen, {}, { onError: 'skip' });
  const runtime = await start(worse);
  await requestRebuild(runtime.db, worse, readSchema, byAnn);
  const held = await until(async () => (await status(runtime, 1))?.rebuild?.heldReason);
  expect(held).toMatch(/^2 skipped events \(the first at position 5\) that the table which answers does not have\. /);
  await acceptRebuild(runtime.db, 'credits', 1, byAnn);
  await until(async () => (await status(runtime, 1))?.rebuild === null);
  expect(await status(runtime, 1)).toMatchObject({ state: 'active', deadLetters: 0, eventsSkipped: 3n });
});
