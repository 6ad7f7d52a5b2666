import { pino } from 'pino';
import { expect, test } from 'vitest';
import { type Config, createRefold, type Projection } from '../../src/index.ts';
import { verifyVersion } from '../../src/runtime/verification/verify.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { totalsByEvolve, totalsBySql } from '../support/account-totals.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { balanceV1, balanceV2, credit, openAccount } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { active, answer, caughtUp, inStore, open, type StoreServer, storeSetting } from '../support/store-setting.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let setting: ReturnType<typeof storeSetting>;
let start: typeof setting.start;
let follow: typeof setting.follow;

/** What holds for read models in another server than the log, whatever kind of server that is. Called at the top of a test file. */
export function readStoresContract(startStore: () => Promise<StoreServer>): void {
  setting = storeSetting(startStore);
  ({ start, follow } = setting);
  answersAndMoves();
  rebuildsAndOutages();
}

function answersAndMoves(): void {
  test('a version in another server is built, served and followed there, and its rows are the fold of the log', async () => {
    const app = await start();
    await active(app, 'balance@1', 'openings@1');
    const feed = follow(app, 'balanceChanges { reset cursor changes { operation key { accountId } } }');
    const created = await answer(
      app,
      'mutation { openAccount(input: { accountId: "a", owner: "ada" }) { balance { owner amount } } }',
    );
    expect(created.openAccount.balance).toEqual({ owner: 'ada', amount: '0.00' });
    await answer(app, 'mutation { credit(input: { accountId: "a", amount: "5.50" }) { balance { amount } } }');
    await open(app, 'b', 'c');
    await until(() => feed.rows.size === 3);

    const { position } = await app.execute(credit, { accountId: 'b', amount: '2' });
    const rows = await answer(
      app,
      `{ balances @after(position: "${position}") { nodes { accountId amount } } openings(owner: "*") { opened } }`,
    ).catch(() => undefined);
    expect(rows).toBeUndefined(); // of two stores
    const own = await answer(app, `query @after(position: "${position}") { balances { nodes { accountId amount } } }`);
    expect(own.balances.nodes).toEqual([
      { accountId: 'a', amount: '5.50' },
      { accountId: 'b', amount: '2.00' },
      { accountId: 'c', amount: '0.00' },
    ]);
    expect(await storedTable(setting.store, balanceV1)).toEqual(await foldedTable(app.log, balanceV1));

    // Nothing of the version is in the database of the log, and nothing of the log in the store.
    const home = createDatabase({ url: setting.log.url });
    expect((await readRegistry(home)).map(({ name }) => name)).toEqual(['openings']);
    await home.close();
    const [counted] = await setting.store.query<{ events: bigint }>({
      text: 'select count(*) as events from refold.events',
    });
    expect(counted?.events).toBe(0n);
    expect((await readRegistry(setting.store)).map(({ name }) => name)).toEqual(['balance']);
    const status = await app.status();
    expect(status.map(({ name, lagEvents }) => [name, lagEvents])).toEqual([
      ['balance', 0n],
      ['openings', 0n],
    ]);
  });

  test('a query reads one store, or several if that is declared; a mutation reads each after its own write', async () => {
    const app = await start();
    await active(app, 'balance@1', 'openings@1');
    await open(app, 'a');
    const both = '{ balances { nodes { accountId } } openings(owner: "*") { opened } }';
    const { errors } = await app.graphql(both);
    expect(errors?.map(({ message, extensions }) => [message, extensions.code])).toEqual([
      [
        expect.stringMatching(/^The operation reads from the stores '\w+' and '\w+', which have no common state\./),
        'BAD_USER_INPUT',
      ],
    ]);
    const payloads = await answer(
      app,
      `mutation {
      openAccount(input: { accountId: "b", owner: "ada" }) { balance { accountId } query { openings(owner: "*") { owner } } }
    }`,
    );
    expect(payloads.openAccount).toEqual({ balance: { accountId: 'b' }, query: { openings: { owner: '*' } } });
    await app.stop();

    const across = await start({ acrossStores: true });
    await active(across, 'balance@1', 'openings@1');
    const { position } = await across.execute(openAccount, { accountId: 'c', owner: 'ada' });
    const response = await fetch(`${across.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'refold-position': '1', 'refold-after': String(position) },
      body: JSON.stringify({ query: both }),
    });
    const { data, extensions } = (await response.json()) as Answer;
    expect(data).toEqual({
      balances: { nodes: ['a', 'b', 'c'].map((accountId) => ({ accountId })) },
      openings: { opened: 3 },
    });
    expect(Object.keys(extensions.cursors).toSorted()).toEqual(['balance', 'openings']);
    const at = expect.stringMatching(new RegExp(`^${position}\\.[0-9a-f]{8}$`));
    expect(extensions.stores).toEqual({ analytics: at, default: at });
  });

  test('the next version moves a read model to another store while the old one answers, and both directions back', async () => {
    const before = await start({ projections: [balanceV1] });
    await active(before, 'balance@1');
    await open(before, 'a', 'b');
    const app = await start({ projections: [balanceV1, inStore(balanceV2)] });
    const feed = follow(app, 'balanceChanges { reset cursor changes { operation key { accountId } } }');
    await active(app, 'balance@1', 'balance@2');
    await until(() => feed.rows.size === 2);
    await open(app, 'c');
    await until(() => feed.rows.size === 3);
    const query = '{ balances { nodes { accountId largest } } }';
    await until(async () => (await app.graphql(query)).errors === undefined);
    expect((await answer(app, query)).balances.nodes).toHaveLength(3);
    expect(await storedTable(setting.store, balanceV2)).toEqual(await foldedTable(app.log, balanceV2));

    const step = { actor: 'test', reason: 'to see' };
    expect(await app.lifecycle.rollback('balance', step)).toEqual({ from: 2, to: 1 });
    await until(async () => (await app.graphql(query)).errors !== undefined); // of version 1
    await open(app, 'd');
    await until(() => feed.rows.size === 4);
    await app.lifecycle.activate('balance', 2, step);
    await app.lifecycle.retire('balance', 1, step);
    await until(async () => (await app.graphql(query)).errors === undefined);
    await open(app, 'e');
    await until(() => feed.rows.size === 5);
    const states = (await app.status()).map(({ name, version, state }) => `${name}@${version} ${state}`);
    expect(states).toEqual(['balance@1 retired', 'balance@2 active']);
  });
}

function rebuildsAndOutages(): void {
  test('rebuilds, snapshots and verifications work in a store, with evolve and with SQL over batches that are sent to it', async () => {
    const sql = inStore(totalsBySql);
    const app = await start({ projections: [inStore(balanceV1), sql] });
    await active(app, 'balance@1', sql.id);
    const random = seeded(seed);
    await traffic(app.log, 400, random);
    const step = { actor: 'test', reason: 'to see' };
    for (const inPlace of [false, true])
      for (const projection of [balanceV1, sql]) {
        const working = traffic(app.log, 100, random);
        await app.rebuilds.request(projection.id, { ...step, inPlace, wait: true });
        await working;
        await caughtUp(app, projection.id);
      }
    const home = createDatabase({ url: setting.log.url });
    const apart = createDatabase({
      url: setting.server.url,
      elsewhere: { log: home, storesOf: () => [], others: () => [] },
    });
    for (const [projection, like] of [
      [balanceV1, balanceV1],
      [sql, totalsByEvolve],
    ] as const) {
      const stored = await currentTable(projection);
      expect(await storedTable(setting.store, { ...projection, tableName: stored })).toEqual(
        await foldedTable(app.log, like),
      );
      const found = await verifyVersion({ db: apart, log: app.log, readSchema: 'read_models', projection });
      expect(found).toMatchObject({ differences: 0 });
      expect(found.rowsCompared).toBeGreaterThan(10);
    }
    await apart.close();
    await home.close();
  });

  test('a store that is away stops its own versions alone, also for a process that starts meanwhile, and they catch up', async () => {
    const app = await start();
    await active(app, 'balance@1', 'openings@1');
    await open(app, 'a');
    await until(async () => (await answer(app, '{ balance(accountId: "a") { owner } }')).balance);
    await setting.server.kill();
    await open(app, 'b', 'c');
    await until(async () => (await answer(app, '{ openings(owner: "*") { opened } }')).openings.opened === 3);
    const unavailable = await until(async () => (await app.graphql('{ balances { nodes { accountId } } }')).errors);
    expect(unavailable.map(({ extensions }) => extensions.code)).toEqual(['DATABASE_UNAVAILABLE']);
    // No version is read, so no store.
    expect(await answer(app, '{ __typename }')).toEqual({ __typename: 'Query' });
    expect(setting.said.filter((line) => line.includes('fell back to the executor'))).toEqual([]);
    expect((await fetch(`${app.url}/health/ready`)).status).toBe(200);
    const health = async () =>
      (await (await fetch(`${app.url}/health`)).json()) as { readStores?: object; projections: readonly object[] };
    await until(async () => 'analytics' in ((await health()).readStores ?? {}));
    expect((await health()).projections).toEqual([
      { projection: 'balance', version: 1, readStore: 'analytics', state: 'active', ready: true },
      { projection: 'openings', version: 1, state: 'active', ready: true },
    ]);
    const metrics = async () => (await fetch(`${app.url}/metrics`)).text();
    expect(await metrics()).toContain('refold_read_store_available{store="analytics"} 0');

    const late = await start();
    await open(late, 'd');
    await until(async () => (await answer(late, '{ openings(owner: "*") { opened } }')).openings.opened === 4);
    const [refused] = (await late.graphql('{ balances { nodes { accountId } } }')).errors ?? [];
    expect(refused?.extensions.code).toBe('DATABASE_UNAVAILABLE');
    expect((await fetch(`${late.url}/health/ready`)).status).toBe(200);
    await setting.server.restart();
    for (const one of [app, late]) {
      await until(async () => {
        const { data, errors } = await one.graphql('{ balances { nodes { accountId } } }');
        return errors === undefined && (data as { balances: { nodes: object[] } }).balances.nodes.length === 4;
      });
    }
    expect(setting.said).toContainEqual(expect.stringContaining("the read store 'analytics' is not available"));
    await until(async () => !('readStores' in (await health())));
    const after = await metrics();
    expect(after).toContain('refold_read_store_available{store="analytics"} 1');
    expect(after).toContain('refold_version_in_store{projection="balance",version="1",store="analytics"} 1');
    await until(() => setting.said.some((line) => line.startsWith("the read store 'analytics' is available again")));
  });

  test('a store with the rows of another log is recognized, and its versions stop', async () => {
    const app = await start();
    await active(app, 'balance@1');
    await open(app, 'a', 'b');
    await caughtUp(app, 'balance@1');
    await app.stop();
    const other = await createTestDatabase();
    const former = setting.log;
    setting.log = other;
    const moved = await start();
    await until(async () => (await moved.status()).find(({ name }) => name === 'balance')?.error);
    const status = (await moved.status()).find(({ name }) => name === 'balance');
    expect(status?.error?.code).toBe('HISTORY_CHANGED');
    await moved.stop();
    await former.drop();
  });

  test('a database that holds a log is refused as a store', async () => {
    await expect(start({ storeUrl: setting.log.url })).rejects.toMatchObject({
      code: 'DATABASE_UNSUITABLE',
      message: expect.stringContaining("The read store 'analytics': PostgreSQL at"),
    });
  });

  test('one database as two stores is refused, and so is a store without tables, by its name', async () => {
    const config = setting.configOf();
    const withStores = (readStores: Config['readStores']) =>
      createRefold({ ...config, readStores }, { migrate: false, logger: pino({ level: 'silent' }) });
    const { analytics = expect.unreachable() } = config.readStores;
    await expect(withStores({ analytics, again: analytics })).rejects.toMatchObject({
      code: 'DATABASE_UNSUITABLE',
      message: expect.stringContaining('It is the database of another read store, too.'),
    });
    const empty = await createTestDatabase({ role: 'superuser' });
    await empty.administer('drop schema refold cascade');
    const { placement: _, ...plain } = analytics;
    await expect(withStores({ analytics: { ...plain, url: empty.url } })).rejects.toThrow(
      /^The read store 'analytics': .*Run `refold migrate`/,
    );
    await empty.drop();
  });
}

interface Answer {
  readonly data: unknown;
  readonly extensions: { readonly cursors: Record<string, string>; readonly stores: Record<string, string> };
}

async function currentTable({ name, version }: Projection): Promise<string> {
  const found = (await readRegistry(setting.store)).find((one) => one.name === name && one.version === version);
  return found?.tableName ?? expect.unreachable();
}
