import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { inStore } from '../support/store-setting.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin, tokens } from './admin-under-test.ts';
import { fillOperated, operated } from './operated-application.ts';

/** The log and `balance@1`, `openings@1` are in one server; `balance@2`, `openings@2` and `strict@1` in another one. */
const apart = ['balance@2', 'openings@2', 'strict@1'];
const projections = operated.projections.map((one) => (apart.includes(one.id) ? inStore(one) : one));

let server: PostgresCluster;
let store: Database;
let admin: AdminUnderTest;

beforeAll(async () => {
  server = await startOwnServer();
  store = createDatabase({ url: server.url });
  admin = await startAdmin({ ...operated, projections, readStores: { analytics: { url: server.url } } }, fillOperated);
});
afterAll(async () => {
  await admin.close();
  await store.close();
  await server.stop();
});

const preview = (action: object) =>
  admin.post('query ($action: ActionInput!) { preview(action: $action) { refusal details warnings digest } }', {
    action,
  });

async function run(action: object): Promise<{ readonly summary: string; readonly version: { state: string } | null }> {
  const { data, errors } = await preview(action);
  expect(errors).toBeUndefined();
  const variables = { action, digest: data.preview.digest, reason: 'as agreed' };
  const answer = await admin.data(
    `mutation ($action: ActionInput!, $digest: String!, $reason: String!) {
      run(action: $action, digest: $digest, reason: $reason) { summary version { state store } }
    }`,
    variables,
  );
  return answer.run;
}

test('the versions of all stores are shown, each with its store and with what its own database knows of it', async () => {
  const { versions, overview } = await admin.data(`{
    versions {
      storesAway
      items { id store state position lagEvents { value isExact } table { name indexes { name } } runs { items { events } }
        history { items { operation store } } deadLetters { value } actions }
    }
    overview {
      versionCount deadLetters { value }
      stores { name isAway versionCount connections { used groups { applicationName } } }
      answers { projection version } processes { name versions }
    }
  }`);
  expect(versions.storesAway).toEqual([]);
  const shown = new Map<string, Record<string, never>>(versions.items.map((one: { id: string }) => [one.id, one]));
  expect([...shown].map(([id, one]) => [id, one.store]).toSorted()).toEqual([
    ['balance@1', 'default'],
    ['balance@2', 'analytics'],
    ['openings@1', 'default'],
    ['openings@2', 'analytics'],
    ['strict@1', 'analytics'],
  ]);
  expect(shown.get('balance@2')).toMatchObject({
    state: 'ACTIVE',
    position: '6',
    lagEvents: { value: 0, isExact: true },
    table: { name: 'balance_v2', indexes: expect.arrayContaining([{ name: expect.stringContaining('owner') }]) },
    history: { items: expect.arrayContaining([{ operation: 'ready → active', store: 'analytics' }]) },
    actions: expect.arrayContaining(['ROLLBACK', 'PAUSE', 'REBUILD', 'TAKE_SNAPSHOT']),
  });
  expect(shown.get('strict@1')).toMatchObject({ deadLetters: { value: 4 } });
  expect(overview).toMatchObject({ versionCount: 5, deadLetters: { value: 4 } });
  expect(overview.stores).toMatchObject([
    { name: 'default', isAway: false, versionCount: 2 },
    { name: 'analytics', isAway: false, versionCount: 3 },
  ]);
  const programs = overview.stores[1].connections.groups.map((one: { applicationName: string }) => one.applicationName);
  expect(programs).toContain('refold-admin');
  expect(overview.answers).toContainEqual({ projection: 'balance', version: 'balance@2' });
  expect(overview.processes).toMatchObject([{ name: 'admin-test', versions: expect.arrayContaining(apart) }]);
});

test('how far a version is behind is counted in the log, whatever store has the version', async () => {
  const position = (at: number) =>
    store.query({ text: `update refold.processors set checkpoint = ${at} where name = 'balance' and version = 2` });
  await position(2);
  const lag = '{ version(id: "balance@2") { position lag lagEvents { value isExact } lagSeconds } }';
  await until(async () => (await admin.data(lag)).version.position === '2');
  expect((await admin.data(lag)).version).toMatchObject({
    lag: '4',
    lagEvents: { value: 4, isExact: true },
    lagSeconds: expect.toSatisfy((seconds: number) => seconds > 0),
  });
  await position(6);
  await until(async () => (await admin.data(lag)).version.position === '6');
});

test('dead letters of all stores are in one list, and in one count by groups', async () => {
  const { deadLetters, deadLetterGroups } = await admin.data(`{
    deadLetters { storesAway items { id of position error { message } blocked { value } event { type } } }
    deadLetterGroups(by: [OF, EVENT]) { storesAway visited items { of eventType count waiting } }
  }`);
  expect(deadLetters.storesAway).toEqual([]);
  expect(deadLetters.items).toHaveLength(4);
  const [first] = deadLetters.items;
  expect(first).toMatchObject({ of: 'strict@1', position: '2', blocked: { value: 1 }, event: { type: 'Debited' } });
  expect(deadLetterGroups).toEqual({
    storesAway: [],
    visited: 4,
    items: [{ of: 'strict@1', eventType: 'Debited', count: 4, waiting: 2 }],
  });
  const one = await admin.data('query ($id: ID!) { deadLetter(id: $id) { of } }', { id: first.id });
  expect(one.deadLetter).toEqual({ of: 'strict@1' });
});

test('rows and their history are those of the store of each version', async () => {
  const { rows, rowHistory } = await admin.data(`{
    rows(version: "balance@2") { items { key row } }
    rowHistory(projection: "strict", key: "a") { versions items { event { position } states { outcome } } }
  }`);
  expect(rows.items.map(({ key }: { key: string }) => key)).toEqual(['a', 'b']);
  expect(rowHistory.items).toEqual([
    { event: { position: '2' }, states: [{ outcome: 'LEFT_OUT' }] },
    { event: { position: '3' }, states: [{ outcome: 'LEFT_OUT' }] },
  ]);
});

test('the audit log is that of all stores: page by page, of one version, and as a file', async () => {
  interface Entry {
    readonly id: string;
    readonly at: string;
    readonly of: string;
    readonly store: string;
  }
  const page = async (first: number, after: string | null) =>
    (
      await admin.data(
        'query ($first: Int, $after: String) { auditLog(first: $first, after: $after) { items { id at of store } next storesAway } }',
        { first, after },
      )
    ).auditLog as { items: Entry[]; next: string | null; storesAway: string[] };
  const { items: all, next, storesAway } = await page(1000, null);
  expect([next, storesAway]).toEqual([null, []]);
  expect(all.map(({ at }) => at)).toEqual(
    all
      .map(({ at }) => at)
      .toSorted()
      .toReversed(),
  );
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  const stores = (of: string) => new Set(all.filter((one) => one.of === of).map((one) => one.store));
  expect([stores('balance@1'), stores('strict@1'), stores('mails')]).toEqual([
    new Set(['default']),
    new Set(['analytics']),
    new Set(['default']),
  ]);
  const paged: Entry[] = [];
  for (let after: string | null = null, pages = 0; pages === 0 || after !== null; pages++) {
    const one = await page(2, after);
    paged.push(...one.items);
    after = one.next;
  }
  expect(paged.map(({ id }) => id).toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  const file = await fetch(`${admin.refold.url}/admin/audit.csv`, {
    headers: { authorization: `Bearer ${tokens.read}` },
  });
  const lines = (await file.text()).trim().split('\r\n');
  expect(lines).toHaveLength(all.length + 1);
  expect(lines.some((line) => line.includes(',strict@1,') && line.endsWith(',analytics'))).toBe(true);
});

test('actions run in the store of their version, also if versions of one projection are in two stores', async () => {
  expect(await run({ rollback: { projection: 'balance' } })).toMatchObject({
    summary: 'balance@1 answers again. balance@2 stays current and ready.',
  });
  expect(await run({ activate: { version: 'balance@2' } })).toMatchObject({
    version: { state: 'ACTIVE', store: 'analytics' },
  });
  const recorded = await store.query({
    text: `select name, to_state, actor from refold.transitions where actor = 'ada' order by id`,
  });
  expect(recorded).toEqual([
    { name: 'balance', to_state: 'ready', actor: 'ada' },
    { name: 'balance', to_state: 'active', actor: 'ada' },
  ]);
  const retirement = await preview({ retire: { version: 'balance@1' } });
  expect(retirement.data.preview.refusal).toBeNull(); // balance@2 answers, in another store
  const answering = await preview({ retire: { version: 'balance@2' } });
  expect(answering.data.preview.refusal).toContain('balance@1 would answer in its place');
});

test('rows of versions in two stores are not compared, and one of another store is compared with the log', async () => {
  const { errors } = await admin.post('{ diff(older: "balance@1", newer: "balance@2") { rows } }');
  expect(errors?.[0]).toMatchObject({
    message: expect.stringContaining("balance@1 is in the store 'default' and balance@2 in 'analytics'"),
    extensions: { code: 'INVALID_TRANSITION' },
  });
  const verified = await admin.subscribe(
    'subscription { verify(version: "balance@2") { result { rowsCompared differences } } }',
  );
  expect(await verified.text()).toContain('{"rowsCompared":"2","differences":"0"}');
});

test('a store that is away is named wherever its versions are missing, and the versions of others are operated', async () => {
  await server.kill();
  const overview = async () =>
    await admin.data('{ overview { stores { name isAway } versionCount } versions { storesAway items { id } } }');
  await until(async () => (await overview()).overview.stores[1].isAway);
  expect(await overview()).toEqual({
    overview: {
      stores: [
        { name: 'default', isAway: false },
        { name: 'analytics', isAway: true },
      ],
      versionCount: 2,
    },
    versions: { storesAway: ['analytics'], items: [{ id: 'balance@1' }, { id: 'openings@1' }] },
  });
  const lists = await admin.data(`{
    deadLetters { items { id } storesAway }
    deadLetterGroups(by: OF) { visited storesAway }
    auditLog(first: 1) { items { store } next storesAway }
  }`);
  expect(lists).toMatchObject({
    deadLetters: { items: [], storesAway: ['analytics'] },
    deadLetterGroups: { visited: 0, storesAway: ['analytics'] },
    auditLog: { items: [{ store: 'default' }], storesAway: ['analytics'] },
  });
  for (const query of [
    '{ version(id: "balance@2") { id } }',
    '{ deadLetter(id: "strict@1:1") { id } }',
    '{ rows(version: "balance@2") { items { key } } }',
    '{ discards(version: "strict@1") { next } }',
    '{ preview(action: { pause: { version: "balance@2" } }) { summary } }',
  ]) {
    const [error] = (await admin.post(query)).errors ?? [];
    expect(error, query).toMatchObject({
      message: expect.stringContaining("The read store 'analytics'"),
      extensions: { code: 'DATABASE_UNAVAILABLE' },
    });
  }
  const retry = await preview({ retryDeadLetters: { filter: { of: 'strict@1' } } });
  expect(retry.data.preview.refusal).toBe(
    "The read store 'analytics' does not respond. In the other stores: There are no such dead letters.",
  );
  const file = await fetch(`${admin.refold.url}/admin/audit.csv`, {
    headers: { authorization: `Bearer ${tokens.read}` },
  });
  expect([file.status, await file.text()]).toEqual([503, expect.stringContaining("The read store 'analytics'")]);

  const pausing = await preview({ pause: { version: 'balance@1' } });
  expect(pausing.data.preview.refusal).toBeNull();
  expect(await run({ pause: { version: 'balance@1' } })).toMatchObject({ summary: 'balance@1 is paused.' });
  expect(await run({ resume: { version: 'balance@1' } })).toMatchObject({ summary: 'balance@1 is resumed.' });

  // A page that began without the store does not have it later: it says so to the end.
  const { next } = lists.auditLog;
  await server.restart();
  await until(async () => !(await overview()).overview.stores[1].isAway);
  const { auditLog } = await admin.data(
    'query ($after: String) { auditLog(first: 1000, after: $after) { items { store } storesAway } }',
    { after: next },
  );
  expect(auditLog.storesAway).toEqual(['analytics']);
  expect((await overview()).overview.versionCount).toBe(5);
  expect((await admin.data('{ deadLetters { items { id } storesAway } }')).deadLetters).toMatchObject({
    storesAway: [],
    items: { length: 4 },
  });
});
