import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type MoveArguments, moveVersions } from '../../src/cli/versions/move-versions.ts';
import { defineProjection, one, type Projection, type Refold, t } from '../../src/index.ts';
import { beginMove, cancelMove } from '../../src/runtime/moves/begin-move.ts';
import { retireCopy } from '../../src/runtime/moves/retire-copy.ts';
import { openStores } from '../../src/runtime/stores/open-stores.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import type { ReadStores } from '../../src/store/read-store.ts';
import { type RegisteredVersion, readRegistry } from '../../src/store/registry/registry.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { followFeed } from '../support/feed-client.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1, balanceV2, credit, openingsV1 } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { active, answer, caughtUp, inStore, open, storeSetting } from '../support/store-setting.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// A version moves to another store under its own number.
const setting = storeSetting();
const { said, start, follow } = setting;
const step = { actor: 'test', reason: 'to see' };
const feedField = 'balanceChanges { reset cursor changes { operation key { accountId } } }';
let printed: string[] = [];

beforeEach(() => {
  printed = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
});
afterEach(() => vi.restoreAllMocks());

/** As `refold rebuild VERSION --store NAME` does. */
async function move(
  projections: readonly Projection[],
  version: string,
  store: string,
  more: Partial<MoveArguments> = {},
): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const before = signals.map((signal) => process.listeners(signal));
  try {
    await moveVersions(setting.configOf({ projections }), store, { version, ...more });
  } finally {
    // A command handles signals to the end of its process.
    for (const [index, signal] of signals.entries())
      for (const listener of process.listeners(signal))
        if (!before[index]?.includes(listener)) process.removeListener(signal, listener);
  }
}

/** The stores, as an operator's command opens them. */
async function withStores<T>(projections: readonly Projection[], work: (stores: ReadStores) => Promise<T>): Promise<T> {
  const databases = openStores(setting.configOf({ projections }), setting.log.url);
  try {
    return await work(databases.stores);
  } finally {
    await databases.close();
  }
}

async function copyIn(store: 'default' | 'analytics', { name, version }: Projection): Promise<RegisteredVersion> {
  const db = createDatabase({ url: store === 'default' ? setting.log.url : setting.server.url });
  const found = (await readRegistry(db)).find((one) => one.name === name && one.version === version);
  await db.close();
  return found ?? expect.unreachable(`${name}@${version} is not in ${store}`);
}

const repeated: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of repeated.splice(0)) await one.stop();
});

/** Does it again and again until stopped, or until the test ends. `stop` fails if it has failed. */
function repeat(work: () => Promise<unknown>) {
  let working = true;
  let count = 0;
  const loop = (async () => {
    for (; working; count++) await work();
  })();
  loop.catch(() => {}); // `stop` reports it
  const repeating = {
    get count() {
      return count;
    },
    async stop() {
      working = false;
      await loop;
    },
  };
  repeated.push(repeating);
  return repeating;
}

async function rowsOf(app: Refold): Promise<number> {
  return (await answer(app, '{ balances(first: 100) { totalCount } }')).balances.totalCount;
}

const both = [balanceV1, openingsV1];

test('versions move to another store together, under traffic: no query fails, no change is missed, and the rows are the fold of the log', async () => {
  const app = await start({ projections: both });
  await active(app, 'balance@1', 'openings@1');
  const random = seeded(seed);
  await traffic(app.log, 200, random);
  await caughtUp(app, 'balance@1');
  const feed = follow(app, feedField);
  // Of one store before and after: both move in one step.
  const queries = repeat(() =>
    answer(app, '{ balances(first: 5) { nodes { amount } } openings(owner: "*") { opened } }'),
  );
  const appends = repeat(() => traffic(app.log, 10, random));
  await move(both, 'all', 'analytics');
  expect(printed.at(-1)).toBe("The read store 'analytics' has balance@1, openings@1 now.");
  await until(
    () => said.includes("balance@1 has moved to 'analytics'") && said.includes("openings@1 has moved to 'analytics'"),
  );
  const { position } = await app.log.append({
    family: account,
    streamId: 'last',
    events: [{ type: 'Opened', payload: { owner: 'ada' } }],
  });
  await answer(app, `query @after(position: "${position}") { balance(accountId: "last") { owner } }`);
  await appends.stop();
  const before = queries.count;
  await until(() => queries.count > before + 3);
  await queries.stop();
  await caughtUp(app, 'balance@1');
  for (const projection of both) {
    const { tableName } = await copyIn('analytics', projection);
    const stored = { ...projection, tableName };
    expect(await storedTable(setting.store, stored)).toEqual(await foldedTable(app.log, projection));
  }
  const count = await rowsOf(app);
  await until(() => feed.rows.size === count);
  const versions = (await app.status()).map(({ name, version, state }) => `${name}@${version} ${state}`);
  expect(versions).toEqual(['balance@1 active', 'openings@1 active']);
});

test('whatever store is declared, a version stays where its rows are, and processes with either declaration answer from there', async () => {
  const app = await start({ projections: [balanceV1] });
  await active(app, 'balance@1');
  await open(app, 'a', 'b');
  await caughtUp(app, 'balance@1');
  const declaresStore = await start({ projections: [inStore(balanceV1)] });
  expect(said).toContainEqual(
    "balance@1 is declared in the store 'analytics', and its rows are in another one. They answer from there. After a move, declare the store that it went to; 'refold rebuild balance@1 --store analytics' moves it to the one that is declared.",
  );
  expect(await rowsOf(declaresStore)).toBe(2);
  expect(await readRegistry(setting.store)).toEqual([]);

  await move([inStore(balanceV1)], 'balance@1', 'analytics');
  await open(app, 'c');
  for (const one of [app, declaresStore]) await until(async () => (await rowsOf(one)) === 3);
  const later = [await start({ projections: [balanceV1] }), await start({ projections: [inStore(balanceV1)] })];
  for (const one of later) expect(await rowsOf(one)).toBe(3);
  await setting.server.kill();
  for (const one of [app, ...later]) {
    const errors = await until(async () => (await one.graphql('{ balances { totalCount } }')).errors);
    expect(errors[0]?.extensions.code).toBe('DATABASE_UNAVAILABLE');
  }
  await setting.server.restart();
  for (const one of [app, ...later])
    await until(async () => (await one.graphql('{ balances { totalCount } }')).errors === undefined);
});

test('a process that does not know the store answers from the copy that is left, until that is retired; then such a process is refused', async () => {
  const old = await start({ projections: [balanceV1], knowsStore: false });
  await active(old, 'balance@1');
  await open(old, 'a');
  await move([balanceV1], 'balance@1', 'analytics', { detach: true });
  expect(printed[0]).toBe(
    "No running process knows the read store 'analytics'. Deploy the configuration with it: the move begins then.",
  );
  const app = await start({ projections: [balanceV1] });
  await until(async () => (await copyIn('analytics', balanceV1)).arrivingFrom === null);
  await open(app, 'b');
  for (const one of [old, app]) await until(async () => (await rowsOf(one)) === 2);

  const retire = () =>
    withStores([balanceV1], ({ home, apart: [analytics] }) =>
      retireCopy(
        {
          name: 'balance',
          version: 1,
          store: home,
          current: analytics ?? home,
          readSchema: 'read_models',
          graceSeconds: 0,
        },
        step,
      ),
    );
  await expect(retire()).rejects.toThrow(/from the store 'default': these processes do not know the store 'analytics'/);
  await old.stop();
  await until(() =>
    retire().then(
      () => true,
      () => false,
    ),
  );
  expect(await copyIn('default', balanceV1)).toMatchObject({ state: 'retired', movedTo: 'analytics' });
  await open(app, 'c');
  await until(async () => (await rowsOf(app)) === 3);
  await expect(start({ projections: [balanceV1], knowsStore: false })).rejects.toMatchObject({
    code: 'PROJECTION_CHANGED',
    message:
      "balance@1 has moved to the read store 'analytics', which this configuration does not have. Add it to 'readStores'.",
  });
  const empty = await createTestDatabase();
  await expect(start({ projections: [balanceV1], storeUrl: empty.url })).rejects.toMatchObject({
    code: 'PROJECTION_CHANGED',
    message:
      "balance@1 has moved to the read store 'analytics', and the database that is configured for it does not have the version. Correct its URL in 'readStores', or restore that database.",
  });
  await empty.drop();
  const later = await start({ projections: [inStore(balanceV1)] });
  expect(await rowsOf(later)).toBe(3);

  // And back, into a store that has retired it before.
  await move([inStore(balanceV1)], 'balance@1', 'default');
  await open(app, 'd');
  await until(async () => (await rowsOf(app)) === 4);
  expect(await copyIn('default', balanceV1)).toMatchObject({ state: 'active', movedTo: null, generation: 2000 });
});

test('a move can be cancelled, asked for again, and taken back while the other store is away', async () => {
  const app = await start({ projections: [balanceV1] });
  await active(app, 'balance@1');
  await open(app, 'a');
  await caughtUp(app, 'balance@1');
  const gateway = await start({ projections: [balanceV1], role: 'gateway' });
  await app.stop();
  // Nobody builds it, so it is under way.
  await move([balanceV1], 'balance@1', 'analytics', { detach: true });
  expect(printed.join()).toContain('No running process maintains balance@1.');
  await expect(move([balanceV1], 'balance@1', 'analytics', { detach: true })).rejects.toThrow(
    /is on its way to the store 'analytics' already/,
  );
  await withStores([balanceV1], async ({ home, apart: [analytics = home] }) => {
    const copy = { name: 'balance', version: 1, readSchema: 'read_models', graceSeconds: 0 };
    await expect(retireCopy({ ...copy, store: analytics, current: home }, step)).rejects.toThrow(
      "balance@1 is on its way to the store 'analytics'. 'refold rebuild balance@1 --store analytics --cancel' ends the move.",
    );
    await expect(retireCopy({ ...copy, version: 2, store: analytics, current: home }, step)).rejects.toThrow(
      "balance@2 has no copy in the store 'analytics'; it is in 'default'.",
    );
  });
  expect(await rowsOf(gateway)).toBe(1);
  await move([balanceV1], 'balance@1', 'analytics', { cancel: true });
  expect(await copyIn('analytics', balanceV1)).toMatchObject({ state: 'retired', arrivingFrom: 'default' });
  expect(await rowsOf(gateway)).toBe(1);

  const again = await start({ projections: [balanceV1] });
  const feed = follow(gateway, feedField);
  await until(() => feed.rows.size === 1);
  /** Waits until the gateway has seen that its rows are elsewhere. Until then it answers from the copy that is left, which is kept current. */
  const seenBy = async (moving: () => Promise<unknown>) => {
    const resets = () => feed.messages.filter(({ reset }) => reset).length;
    const before = resets();
    await moving();
    await until(() => resets() > before);
  };
  await seenBy(() => move([balanceV1], 'balance@1', 'analytics'));
  await open(again, 'b');
  await until(async () => (await rowsOf(gateway)) === 2);
  await setting.server.kill();
  await until(async () => (await gateway.graphql('{ balances { totalCount } }')).errors);
  await move([balanceV1], 'balance@1', 'default');
  await open(again, 'c');
  await until(
    async () =>
      (await gateway.graphql('{ balances { totalCount } }')).errors === undefined && (await rowsOf(gateway)) === 3,
  );
  await setting.server.restart();
  const [from, to] = [await copyIn('analytics', balanceV1), await copyIn('default', balanceV1)];
  expect(to.generation).toBeGreaterThan(from.generation);

  // Forth again, where its copy is, and back while that store is away.
  await until(() => feed.rows.size === 3);
  await seenBy(() =>
    until(() =>
      move([balanceV1], 'balance@1', 'analytics').then(
        () => true,
        () => false, // nobody keeps the copy current yet
      ),
    ),
  );
  expect(await copyIn('default', balanceV1)).toMatchObject({ movedTo: 'analytics' });
  await setting.server.kill();
  await until(async () => (await gateway.graphql('{ balances { totalCount } }')).errors);
  expect(await gateway.status()).toEqual([]);
  await move([balanceV1], 'balance@1', 'default');
  await until(async () => (await gateway.graphql('{ balances { totalCount } }')).errors === undefined);
  expect(await rowsOf(gateway)).toBe(3);
  await setting.server.restart();
});

test('a feed goes on through a move and the way back, and a cursor of the former rows starts again', async () => {
  const app = await start({ projections: [balanceV1] });
  await active(app, 'balance@1');
  await open(app, 'a', 'b');
  const feed = follow(app, feedField);
  await until(() => feed.rows.size === 2);
  const cursor = feed.cursor ?? expect.unreachable();
  await move([balanceV1], 'balance@1', 'analytics');
  await open(app, 'c');
  await until(() => feed.rows.size === 3);
  const resumed = followFeed(
    `${app.url}/graphql`,
    `balanceChanges(since: "${cursor}") { reset cursor changes { operation key { accountId } } }`,
  );
  await until(() => resumed.rows.size === 3);
  expect(resumed.messages[0]).toMatchObject({ reset: true });
  const then = resumed.cursor ?? expect.unreachable();
  await resumed.stop();
  await open(app, 'd');
  const next = followFeed(
    `${app.url}/graphql`,
    `balanceChanges(since: "${then}") { reset cursor changes { operation key { accountId } } }`,
  );
  await until(() => next.rows.size === 1); // only what has changed since
  expect(next.messages[0]).not.toMatchObject({ reset: true });
  await next.stop();
  await move([balanceV1], 'balance@1', 'default');
  await open(app, 'e');
  await until(() => feed.rows.size === 5);
});

const frail = (fails: boolean) =>
  defineProjection({
    name: 'frail',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    onError: 'dead-letter',
    key: (event) => event.streamId,
    evolve: {
      Opened: () => ({ credits: 0 }),
      Credited(row, event) {
        if (event.payload.amount === '13' || (fails && event.payload.amount === '7')) throw new Error('unlucky');
        return row && { credits: row.credits + 1 };
      },
    },
  });

test('a copy with new dead letters does not take over by itself; those that the present copy has do not count', async () => {
  const app = await start({ projections: [frail(false)] });
  await active(app, 'frail@1');
  await open(app, 'a', 'b');
  await app.execute(credit, { accountId: 'a', amount: '7' });
  await app.execute(credit, { accountId: 'b', amount: '13' });
  await caughtUp(app, 'frail@1');
  await app.stop();
  const other = [frail(true)];
  const worse = await start({ projections: other });
  await expect(move(other, 'frail@1', 'analytics')).rejects.toThrow(
    /frail@1 does not take over in 'analytics': 1 dead letters or skipped events that the copy which answers does not have/,
  );
  expect(await answer(worse, '{ frail(accountId: "a") { credits } }')).toEqual({ frail: { credits: 1 } });
  await move(other, 'frail@1', 'analytics', { 'accept-dead-letters': true });
  await until(async () => (await answer(worse, '{ frail(accountId: "a") { credits } }')).frail.credits === 0);
});

test('what was discarded is left out of the copy, too', async () => {
  const declared = [frail(false)];
  const app = await start({ projections: declared });
  await active(app, 'frail@1');
  await open(app, 'b');
  await app.execute(credit, { accountId: 'b', amount: '13' });
  await app.execute(credit, { accountId: 'b', amount: '1' });
  await caughtUp(app, 'frail@1');
  await withStores(declared, async ({ home }) => {
    const { discardDeadLetters } = await import('../../src/runtime/dead-letters/dead-letters.ts');
    await discardDeadLetters({ db: home.db, log: app.log, readSchema: 'read_models', projection: frail(false) }, step);
  });
  await move(declared, 'frail@1', 'analytics');
  await until(async () => (await answer(app, '{ frail(accountId: "b") { credits } }')).frail.credits === 1);
  const versions = await until(async () => {
    const found = (await app.status()).filter(({ name }) => name === 'frail');
    return found.length > 0 && found;
  });
  expect(versions.map(({ deadLetters }) => deadLetters)).toEqual(versions.map(() => 0));
});

test('only an active version moves, and only to another store', async () => {
  const app = await start({ projections: [balanceV1, balanceV2] });
  await active(app, 'balance@1', 'balance@2');
  await app.lifecycle.rollback('balance', step);
  await withStores([balanceV1, balanceV2], async ({ home, apart }) => {
    const to = apart[0] ?? expect.unreachable();
    const options = { to, readSchema: 'read_models', step };
    await expect(beginMove([{ projection: balanceV2, from: home }], options)).rejects.toThrow(
      'balance@2 is ready; only an active version can move.',
    );
    await expect(beginMove([{ projection: balanceV1, from: home }], { ...options, to: home })).rejects.toThrow(
      "balance@1 is in the store 'default' already.",
    );
    await expect(cancelMove(home.db, balanceV1, 'read_models', step)).rejects.toThrow(
      'balance@1 is not on its way to this store.',
    );
    await app.lifecycle.pause('balance', 1, step);
    await expect(beginMove([{ projection: balanceV1, from: home }], options)).rejects.toThrow(/balance@1 is paused/);
  });
});

test('a move that leaves a related version behind says what clients will get, and how to avoid it', async () => {
  const holding = defineProjection({
    ...{ name: 'holding', version: 1, events: account, key: (event) => event.streamId },
    table: { accountId: t.text().primaryKey() },
    relations: { balance: one('balance', { from: 'accountId' }) },
    evolve: { Opened: () => ({}) },
  });
  const projections = [balanceV1, holding, openingsV1];
  const app = await start({ projections });
  await active(app, 'balance@1', 'holding@1', 'openings@1');
  await move(projections, 'openings@1', 'analytics');
  expect(printed.filter((line) => line.includes('Warning'))).toEqual([]);
  await move(projections, 'balance@1', 'analytics');
  expect(printed.filter((line) => line.includes('Warning'))).toEqual([
    "Warning: balance@1 is related to holding@1, which is in the store 'default'. While they are in two stores, queries over the relation fail; gateway.acrossStores allows those that do not filter over it. 'refold rebuild balance@1,holding@1 --store analytics' moves them together.",
  ]);
  printed = [];
  await move(projections, 'holding@1', 'analytics');
  expect(printed.filter((line) => line.includes('Warning'))).toEqual([]);
  printed = [];
  await move(projections, 'holding@1', 'default', { json: true });
  expect(JSON.parse(printed.join(''))).toMatchObject({
    moved: true,
    warnings: [expect.stringMatching(/^holding@1 is related to balance@1, which is in the store 'analytics'\. /)],
  });
});

test('a move away from an inline version names no way to move that one, too', async () => {
  const holding = defineProjection({
    ...{ name: 'holding', version: 1, events: account, key: (event) => event.streamId, mode: 'inline' },
    table: { accountId: t.text().primaryKey() },
    relations: { balance: one('balance', { from: 'accountId' }) },
    evolve: { Opened: () => ({}) },
  });
  const projections = [balanceV1, holding];
  const app = await start({ projections });
  await active(app, 'balance@1', 'holding@1');
  await move(projections, 'balance@1', 'analytics');
  expect(printed.find((line) => line.includes('Warning'))).toMatch(
    /^Warning: balance@1 is related to holding@1, .*\. holding@1 is inline, so it can't move\.$/,
  );
});
