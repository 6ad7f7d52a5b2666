import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, t } from '../../src/index.ts';
import { type InMemoryAppend, proveEqual } from '../../src/testing.ts';
import { totalsByEvolve, totalsBySql } from '../support/account-totals.ts';
import { seeded } from '../support/account-traffic.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
let databaseUrl: string;

beforeAll(async () => {
  database = await createTestDatabase();
  databaseUrl = database.url;
});
afterAll(() => database.drop());

function movements(seed: number, count: number): InMemoryAppend[] {
  const random = seeded(seed);
  return Array.from({ length: count }, () => {
    const amount = (random() * 100).toFixed(2);
    const draw = random();
    return {
      family: account,
      streamId: `account-${Math.floor(random() * 10)}`,
      events: [
        draw < 0.1
          ? { type: 'Closed', payload: {} }
          : draw < 0.5
            ? { type: 'Credited', payload: { amount } }
            : { type: 'Debited', payload: { amount } },
      ],
    };
  });
}

const bySql = (change: object) => {
  const { name, version, families, columns, sqlFold } = totalsBySql;
  const { rows, merge, remove } = sqlFold ?? expect.unreachable();
  const evolveSql = { events: ['Credited', 'Debited', 'Closed'], rows, merge, remove: remove ?? '', ...change };
  return defineProjection({ name, version, events: families, table: columns, evolveSql } as never);
};

test('two forms that return the same rows for the same events are equal, however the events are batched', async () => {
  for (const seed of [1, 2, 3]) {
    await proveEqual({ evolve: totalsByEvolve, evolveSql: totalsBySql, events: movements(seed, 150), databaseUrl });
  }
});

test('two forms without an event are equal', async () => {
  await proveEqual({ evolve: totalsByEvolve, evolveSql: totalsBySql, events: [], databaseUrl });
});

test('SQL that returns another row fails with the row, its columns and the batches', async () => {
  const rows = (totalsBySql.sqlFold?.rows ?? '').replace('sum(amount)', 'sum(abs(amount))');
  const events: InMemoryAppend[] = [
    { family: account, streamId: 'a', events: [{ type: 'Credited', payload: { amount: '5' } }] },
    { family: account, streamId: 'b', events: [{ type: 'Debited', payload: { amount: '3.5' } }] },
  ];
  await expect(proveEqual({ evolve: totalsByEvolve, evolveSql: bySql({ rows }), events, databaseUrl })).rejects.toThrow(
    'account_totals@2 returns other rows than account_totals@1 from the same events, all at once: row ["b"] has balance = "3.5", not "-3.5".',
  );
});

test('SQL that is right for all events at once, but not for batches, fails with the batches', async () => {
  const merge = { ...totalsBySql.sqlFold?.merge, movements: 'replace' };
  const events = movements(4, 60);
  await expect(
    proveEqual({ evolve: totalsByEvolve, evolveSql: bySql({ merge }), events, databaseUrl, seed: 7 }),
  ).rejects.toThrow(/from the same events, one at a time: row \["account-\d"\] has movements = 1, not \d+\.$/);
});

test('extra rows and missing rows are found', async () => {
  const base = {
    name: 'credits',
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
  } as const;
  const evolve = defineProjection({
    ...base,
    version: 1,
    key: (event) => event.streamId,
    evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }), Closed: () => null },
  });
  const evolveSql = defineProjection({
    ...base,
    version: 2,
    evolveSql: {
      events: ['Credited'],
      rows: `select stream_id as account_id, count(*) as credits from batch where stream_id <> 'b' group by 1`,
      merge: { credits: 'add' },
    },
  });
  const credited = { type: 'Credited', payload: { amount: '5' } };
  const a: InMemoryAppend = { family: account, streamId: 'a', events: [credited, { type: 'Closed', payload: {} }] };
  const b: InMemoryAppend = { family: account, streamId: 'b', events: [credited] };
  await expect(proveEqual({ evolve, evolveSql, events: [a], databaseUrl })).rejects.toThrow(
    'row ["a"] should not be there.',
  );
  await expect(proveEqual({ evolve, evolveSql, events: [b], databaseUrl })).rejects.toThrow('row ["b"] is missing.');
});
