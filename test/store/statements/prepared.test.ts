import { afterAll, expect, test } from 'vitest';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { maxPrepared } from '../../../src/store/postgres/prepared-limit.ts';
import { preparedName } from '../../../src/store/statements/prepared.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { createTestDatabase } from '../../support/test-database.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

const statement = (number: number) => ({
  name: `number_${number}`,
  text: `select ${number} + $1::int as sum`,
  values: [1],
});
const ask = (db: Queryable, number: number) => db.query<{ sum: number }>(statement(number));
const counted = async (db: Queryable) => {
  const [row] = await db.query<{ prepared: number; first: boolean }>({
    text: `select count(*)::int as prepared, bool_or(name like 'number\\_0 %') as first from pg_prepared_statements`,
  });
  return row;
};

test.for([
  false,
  true,
])('a connection keeps the prepared statements that it uses, up to a limit (pipeline: %s)', async (pipeline) => {
  const db = createDatabase({ url: database.url, maxConnections: 1, pipeline });
  const many = maxPrepared + 100;
  for (let number = 0; number < many; number++) {
    const [sums] = await Promise.all([ask(db, number), ask(db, 0)]);
    expect(sums).toEqual([{ sum: number + 1 }]);
  }
  expect(await counted(db)).toEqual({ prepared: maxPrepared, first: true });
  // An evicted statement is prepared again, also in a transaction. A transaction that fails leaves the state unchanged.
  await db.transaction(async (tx) => {
    for (let number = 1; number < 50; number++) expect(await ask(tx, number)).toEqual([{ sum: number + 1 }]);
  });
  await db
    .transaction(async (tx) => {
      await tx.query({ name: 'fails', text: 'select 1 / $1::int', values: [0] }).catch(() => {});
      for (let number = 100; number < 150; number++) await ask(tx, number).catch(() => {});
    })
    .catch(() => {});
  for (let number = 0; number < many; number++) expect(await ask(db, number)).toEqual([{ sum: number + 1 }]);
  expect((await counted(db))?.prepared).toBe(maxPrepared);
  await db.close();
});

test('names of any length and statements of the same name stay apart, below the limit of PostgreSQL', async () => {
  const db = createDatabase({ url: database.url, maxConnections: 1 });
  const long = 'upsert and tell '.padEnd(70, 'x');
  const texts = [`${long}_v1`, `${long}_v2`, `${long}_v1`].map((name, index) => ({
    name,
    text: `select ${index} as sum`,
  }));
  for (const _ of [1, 2]) for (const [sum, one] of texts.entries()) expect(await db.query(one)).toEqual([{ sum }]);
  const [row] = await db.query<{ longest: number; found: number }>({
    text: `select max(octet_length(name)) as longest, count(*)::int as found from pg_prepared_statements where name like 'upsert%'`,
  });
  expect(row).toEqual({ longest: 63, found: 3 });
  await db.close();
});

test('a statement that is used again gets a name, regardless of how many names were given before', () => {
  const nameOf = (number: number) => [preparedName(`select ${number}`), preparedName(`select ${number}`)];
  const [, early] = nameOf(0);
  for (let number = 0; number < 2000; number++) {
    const [, name] = nameOf(number);
    expect(name).toMatch(/^refold_[0-9a-f]{24}$/);
  }
  expect(nameOf(0)[1]).toBe(early);
});
