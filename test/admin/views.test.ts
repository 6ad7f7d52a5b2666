import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, defineReactor, t } from '../../src/index.ts';
import { account } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin, tokens } from './admin-under-test.ts';

const table = { accountId: t.text().primaryKey(), owner: t.text().personal(), debits: t.integer() };

const bookV1 = defineProjection({
  name: 'book',
  version: 1,
  events: account,
  table,
  key: (event) => event.streamId,
  history: true,
  onError: { policy: 'dead-letter' },
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, debits: 0 }),
    Debited: (row, event) => {
      if (event.payload.amount === '13') throw new Error('unlucky');
      return row && { ...row, debits: row.debits + 1 };
    },
  },
});

/** Accepts what version 1 does not, and lacks a column. */
const bookV2 = defineProjection({
  name: 'book',
  version: 2,
  events: account,
  table: { accountId: t.text().primaryKey(), debits: t.integer(), credits: t.integer() },
  key: (event) => event.streamId,
  history: true,
  activation: 'manual',
  evolve: {
    Opened: () => ({ debits: 0, credits: 0 }),
    Debited: (row) => row && { ...row, debits: row.debits + 1 },
    Credited: (row) => row && { ...row, credits: row.credits + 1 },
  },
});

const mails = defineReactor({
  name: 'mails',
  events: account,
  onError: { policy: 'dead-letter' },
  handle: {
    Opened: async ({ payload }) => {
      if (payload.owner === 'Eve') throw new Error('no address');
    },
  },
});

let admin: AdminUnderTest;

beforeAll(async () => {
  admin = await startAdmin({ projections: [bookV1, bookV2], reactors: [mails] });
  const debited = (amount: string) => ({ type: 'Debited' as const, payload: { amount } });
  const { log } = admin.refold;
  await log.append({
    family: account,
    streamId: 'a',
    events: [
      { type: 'Opened', payload: { owner: 'Ada' } },
      debited('1'),
      debited('13'),
      { type: 'Credited', payload: { amount: '5' } },
      debited('2'),
    ],
  });
  await log.append({ family: account, streamId: 'e', events: [{ type: 'Opened', payload: { owner: 'Eve' } }] });
  await until(async () =>
    (await admin.refold.status()).every(({ state, lag }) => (state === 'active' || state === 'ready') && lag === 0n),
  );
  await until(async () => (await admin.refold.reactors.status())[0]?.deadLetters === 1);
});
afterAll(() => admin.close());

test('the stepper shows a row before and after each of its events, in two versions at the same time', async () => {
  const { rowHistory } = await admin.data(`{
    rowHistory(projection: "book", key: "a") {
      versions columns { name versions isHidden } next
      items { event { position type } states { version outcome before after changed message } }
    }
  }`);
  expect(rowHistory.versions).toEqual(['book@1', 'book@2']);
  expect(rowHistory.columns).toContainEqual({ name: 'owner', versions: ['book@1'], isHidden: true });
  const steps = rowHistory.items.map(
    ({ event, states }: { event: { type: string }; states: { outcome: string; changed: string[] }[] }) => [
      event.type,
      ...states.map(({ outcome, changed }) => [outcome, changed]),
    ],
  );
  expect(steps).toEqual([
    ['Opened', ['FOLDED', ['accountId', 'owner', 'debits']], ['FOLDED', ['accountId', 'debits', 'credits']]],
    ['Debited', ['FOLDED', ['debits']], ['FOLDED', ['debits']]],
    ['Debited', ['LEFT_OUT', []], ['FOLDED', ['debits']]],
    ['Credited', ['IGNORED', []], ['FOLDED', ['credits']]],
    ['Debited', ['LEFT_OUT', []], ['FOLDED', ['debits']]],
  ]);
  const last = rowHistory.items.at(-1).states;
  expect(last[0].after).toEqual({ accountId: 'a', owner: '(hidden)', debits: 1 });
  expect(last[1].after).toEqual({ accountId: 'a', debits: 3, credits: 1 });

  const page = await admin.data(
    '{ rowHistory(projection: "book", key: "a", versions: [2], first: 2) { items { event { position } } next } }',
  );
  expect(page.rowHistory.items).toHaveLength(2);
  const rest = await admin.data(
    'query ($after: String) { rowHistory(projection: "book", key: "a", versions: [2], after: $after) { items { states { after } } next } }',
    { after: page.rowHistory.next },
  );
  expect(rest.rowHistory).toMatchObject({ next: null, items: [{}, {}, { states: [{ after: { debits: 3 } }] }] });
});

test('rows are listed by key, with personal values hidden', async () => {
  const { rows } = await admin.data('{ rows(version: "book@1", first: 1) { items { key row } next } }');
  expect(rows.items).toEqual([{ key: 'a', row: { accountId: 'a', owner: '(hidden)', debits: 1 } }]);
  const rest = await admin.data(
    'query ($after: String) { rows(version: "book@1", after: $after) { items { key } next } }',
    {
      after: rows.next,
    },
  );
  expect(rest.rows).toEqual({ items: [{ key: 'e' }], next: null });
});

test('dead letters of versions and reactors are listed, filtered and grouped, with what waits behind each', async () => {
  const { deadLetters } = await admin.data(`{
    deadLetters { items { of isReactor position eventType key error { message } attempts blocked { value isExact } event { payload } } next }
  }`);
  expect(deadLetters.next).toBeNull();
  expect(deadLetters.items).toMatchObject([
    {
      of: 'book@1',
      isReactor: false,
      position: '3',
      key: ['a'],
      blocked: { value: 1, isExact: true },
      event: { payload: { amount: '13' } },
    },
    { of: 'book@1', position: '5', error: null, blocked: { value: 0 } },
    { of: 'mails', isReactor: true, position: '6', key: 'account/e', blocked: { value: 0 } },
  ]);
  const failed = await admin.data('{ deadLetters(filter: { of: "book@1", failed: true }) { items { position } } }');
  expect(failed.deadLetters.items).toEqual([{ position: '3' }]);
  const { deadLetterGroups } = await admin.data(
    '{ deadLetterGroups(by: [OF, EVENT]) { items { of eventType error streamId count waiting firstPosition } visited next } }',
  );
  expect(deadLetterGroups).toEqual({
    items: [
      { of: 'book@1', eventType: 'Debited', error: null, streamId: null, count: 2, waiting: 1, firstPosition: '3' },
      { of: 'mails', eventType: 'Opened', error: null, streamId: null, count: 1, waiting: 0, firstPosition: '6' },
    ],
    visited: 3,
    next: null,
  });
  const [{ error }] = (
    await admin.data('{ deadLetterGroups(by: [ERROR], filter: { of: "book@1", failed: true }) { items { error } } }')
  ).deadLetterGroups.items;
  expect(error).toContain('unlucky');
  const same = await admin.data(
    'query ($error: String) { deadLetters(filter: { error: $error }) { items { position } } }',
    { error },
  );
  expect(same.deadLetters.items).toEqual([{ position: '3' }]);
});

test('two versions are compared by rows and by what clients would lose', async () => {
  const { diff } = await admin.data(
    '{ diff(older: "book@1", newer: "book@2") { position rows onlyOlder onlyNewer columns { name rows } samples { key older newer } } }',
  );
  expect(diff).toMatchObject({
    position: '6',
    rows: '2',
    columns: [{ name: 'debits', rows: '1' }],
    samples: [{ key: 'a' }],
  });
  const { schemaChanges } = await admin.data(
    '{ schemaChanges(version: "book@2") { than breakingCount changes { criticality message path isDerived usedBy { client } } } }',
  );
  expect(schemaChanges).toMatchObject({ than: 'book@1', breakingCount: 1 });
  expect(schemaChanges.changes[0]).toMatchObject({ criticality: 'BREAKING', path: 'Book.owner', isDerived: false });
  expect((await admin.data('{ pendingChanges { version } }')).pendingChanges).toEqual([{ version: 'book@2' }]);
});

test('a verification reports its progress and its result, to those who may run one', async () => {
  const verify = async (token: string) => {
    const query =
      'subscription { verify(version: "book@1") { position of result { rowsCompared differences samples { key } } } }';
    return (await admin.subscribe(query, {}, token)).text();
  };
  expect(await verify(tokens.read)).toContain('"FORBIDDEN"');
  const messages = [...(await verify(tokens.all)).matchAll(/^data: (\{.*\})$/gm)].map(
    ([, data = '']) => JSON.parse(data).data.verify,
  );
  expect(messages[0].result).toBeNull();
  expect(messages.at(-1).result).toEqual({ rowsCompared: '2', differences: '0', samples: [] });
});

test('clients are shown with the fields that they use and the versions that they pin', async () => {
  const ask = (headers: Record<string, string>) =>
    fetch(`${admin.refold.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query: '{ book(accountId: "a") { owner debits } }' }),
    }).then((response) => response.json());
  await ask({ 'apollographql-client-name': 'web', 'apollographql-client-version': '3.2' });
  await ask({ 'apollographql-client-name': 'till', 'refold-pin': 'book@1' });
  await admin.refold.schemaEvolution.usage(); // writes the counts of this process
  const { fieldUsage } = await admin.data(
    '{ fieldUsage(path: "Book") { items { path client clientVersion pins operations } next } }',
  );
  expect(fieldUsage.items).toContainEqual({
    path: 'Book.owner',
    client: 'web',
    clientVersion: '3.2',
    pins: [],
    operations: 1,
  });
  const { clients } = await admin.data('{ clients { items { name version fields { value } pins } } }');
  expect(clients.items).toContainEqual(expect.objectContaining({ name: 'till', pins: ['book@1'] }));
  const { version } = await admin.data('{ version(id: "book@1") { pins { client operations } } }');
  expect(version.pins).toEqual([{ client: 'till', operations: 1 }]);
  const { schemaChanges } = await admin.data(
    '{ schemaChanges(version: "book@2") { changes { path usedBy { client } } } }',
  );
  expect(schemaChanges.changes.find(({ path }: { path: string }) => path === 'Book.owner').usedBy).toEqual([
    { client: 'web' },
  ]);
});

test('a reactor is shown with its state, its versions and what operators did with it', async () => {
  const { reactors } = await admin.data(
    '{ reactors { name state isDeclared position lag handled deadLetters { value } waiting { value } versions { number } history { items { operation } } actions } }',
  );
  expect(reactors).toMatchObject([
    { name: 'mails', state: 'running', isDeclared: true, lag: '0', deadLetters: { value: 1 } },
  ]);
  expect(reactors[0].actions).toContain('RETRY_DEAD_LETTERS');
});
