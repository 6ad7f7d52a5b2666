import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, defineReactor, t } from '../../src/index.ts';
import { account } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin } from './admin-under-test.ts';

const onError = { policy: 'dead-letter', retries: [] } as const;
const table = { accountId: t.text().primaryKey(), owner: t.text().unique() };

function tooLarge(amount: string): never {
  throw new Error(`the amount ${amount} is too large`);
}

const strict = defineProjection({
  name: 'strict',
  version: 1,
  events: account,
  table,
  key: (event) => event.streamId,
  onError,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner }),
    Credited: () => {
      throw new Error('no credits');
    },
    Debited: (_, event) => tooLarge(event.payload.amount),
  },
});

const mails = defineReactor({
  name: 'mails',
  events: account,
  onError,
  handle: {
    Closed: async () => {
      throw new Error('no address');
    },
  },
});

// What a pattern could take for the end of the place of an event.
const streams = ['a', 'b: (c)', 'd (e): f'];
let admin: AdminUnderTest;

beforeAll(async () => {
  admin = await startAdmin({ projections: [strict], reactors: [mails] }, async ({ log, status, reactors }) => {
    for (const [index, streamId] of streams.entries())
      await log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount: `${index}` } }] });
    for (const [index, streamId] of streams.entries())
      await log.append({
        family: account,
        streamId: `more ${streamId}`,
        events: [
          { type: 'Debited', payload: { amount: `${index}` } },
          { type: 'Closed', payload: {} },
        ],
      });
    // The database refuses all but the first.
    for (const streamId of streams)
      await log.append({
        family: account,
        streamId: `opened ${streamId}`,
        events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
      });
    await until(async () => (await status()).every(({ state, lag }) => state !== 'building' && lag === 0n));
    await until(async () => (await reactors.status())[0]?.lag === 0n);
  });
});
afterAll(() => admin.close());

const groupsBy = async (...by: string[]) =>
  (await admin.data(`{ deadLetterGroups(by: [${by}]) { items { error stack eventType count } } }`)).deadLetterGroups
    .items;

test('the same error of many events, streams and rows is one group, whatever a stream is called', async () => {
  const groups: { error: string; count: number }[] = await groupsBy('ERROR');
  const counts = Object.fromEntries(groups.map(({ error, count }) => [error, count]));
  expect(counts).toMatchObject({
    "strict@1: evolve of 'Credited' failed: no credits": 3,
    "mails: handling 'Closed' failed: no address": 3,
    "strict@1: evolve of 'Debited' failed: the amount 0 is too large": 1,
    "strict@1: evolve of 'Debited' failed: the amount 1 is too large": 1,
  });
  const refused = groups.filter(({ error }) => error.includes('the database refuses a row that'));
  expect(refused.map(({ count }) => count)).toEqual([2]);
});

test('errors that were thrown at one place are one group by their stack, whatever values they name', async () => {
  const groups: { stack: string | null; count: number }[] = await groupsBy('STACK');
  const [thrown] = groups.filter(({ stack }) => stack?.includes('tooLarge'));
  expect(thrown?.count).toBe(3);
  expect(thrown?.stack).toMatch(/^at tooLarge \(/);
  expect(thrown?.stack).not.toContain('is too large');
});

test('a group is a filter of the list and of actions, and one dead letter is found by its id', async () => {
  const [byStack] = (await groupsBy('STACK')).filter(({ stack }: { stack: string }) => stack?.includes('tooLarge'));
  const query = 'query ($filter: DeadLetterFilter) { deadLetters(filter: $filter) { items { id eventType } } }';
  const found = (await admin.data(query, { filter: { stack: byStack.stack } })).deadLetters.items;
  expect(found).toHaveLength(3);
  const error = "mails: handling 'Closed' failed: no address";
  expect((await admin.data(query, { filter: { error } })).deadLetters.items).toHaveLength(3);
  const one = 'query ($id: ID!) { deadLetter(id: $id) { id of error { message stack } blocked { value } } }';
  const { deadLetter } = await admin.data(one, { id: found[0].id });
  expect(deadLetter).toMatchObject({ id: found[0].id, of: 'strict@1', blocked: { value: 0 } });
  expect((await admin.data(one, { id: 'strict@1:999999' })).deadLetter).toBeNull();
});
