import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnswerQuery } from '../../src/projections/answer-query.ts';
import type { RowFilter } from '../../src/projections/row-query.ts';
import { createAnswers } from '../../src/runtime/answers.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createReadTable } from '../../src/store/read-table.ts';
import type { Statement } from '../../src/store/statement.ts';
import { orderBook, rowsOf } from '../store/order-book.ts';
import { effort } from '../support/effort.ts';
import { createReadModelWriter, readSchema } from '../support/read-model-writer.ts';
import { balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

/** A database that answers each key with itself, but for one that is not there. */
function echo() {
  const statements: Statement[] = [];
  return {
    statements,
    async query<Row extends object>(statement: Statement): Promise<Row[]> {
      statements.push(statement);
      const keys = statement.values?.find(Array.isArray) as readonly string[] | undefined; // bound as one array, where they are several
      if (!keys) return [{ answer: JSON.stringify({ b: keyOf(statement) }) }] as never;
      const rows = keys.map((key, index) => ({ place: BigInt(index + 1), answer: JSON.stringify(key) }));
      return rows.filter(({ answer }) => answer !== '"nobody"').reverse() as never;
    },
  };
}

/** Bound as a value: the only one, or the last. */
const keyOf = ({ values }: Statement) => values?.find(Array.isArray) ?? values?.at(-1);

const shape = {
  roots: [['b', { kind: 'row', read: 0, row: [['t', { kind: 'constant', json: '"Balance"' }]] }]],
} as const;
const lookUp = (key: string, where: RowFilter | null = null): AnswerQuery => ({
  shape,
  reads: [{ kind: 'row', projection: balanceV1, columns: [], by: balanceV1.keyColumns, key: [key], where }],
});

test('look-ups of one turn share a statement, each with its own row', async () => {
  const db = echo();
  const answer = createAnswers(db, 'read_models');
  const keys = ['a', 'nobody', 'b', 'a'];
  const answers = await Promise.all(keys.map((key) => answer(lookUp(key))));
  expect(answers).toEqual(['{"b":"a"}', '{"b":null}', '{"b":"b"}', '{"b":"a"}']);
  expect(db.statements.map(({ values }) => values)).toEqual([[keys]]);
});

test('no statement is shared by those who may not read the same rows, nor one longer than a thousand keys', async () => {
  const db = echo();
  const answer = createAnswers(db, 'read_models');
  const of = (owner: string): RowFilter => ({ kind: 'compare', column: 'owner', operator: 'eq', value: owner });
  await Promise.all([
    answer(lookUp('a', of('Ada'))),
    answer(lookUp('b', of('Bo'))),
    answer(lookUp('c', of('Ada'))),
    answer(lookUp('d')),
  ]);
  expect(db.statements.map(keyOf)).toEqual(expect.arrayContaining([['a', 'c'], 'b', 'd']));
  expect(db.statements).toHaveLength(3);
  db.statements.length = 0;
  const many = Array.from({ length: 2001 }, (_, index) => `k${index}`);
  expect(await Promise.all(many.map((key) => answer(lookUp(key))))).toEqual(many.map((key) => `{"b":"${key}"}`));
  expect(db.statements.map((statement) => [keyOf(statement)].flat().length)).toEqual([1000, 1000, 1]);
});

test('where a statement fails, all who share it hear of it', async () => {
  const answer = createAnswers({ query: () => Promise.reject(new Error('gone')) }, 'read_models');
  const both = await Promise.allSettled([answer(lookUp('a')), answer(lookUp('b'))]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

describe('on a table', () => {
  let testDatabase: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    db = createDatabase({ url: testDatabase.url, maxConnections: 1 });
    for (const projection of [orderBook, balanceV1]) await createReadModelWriter(db, projection);
  });

  afterAll(async () => {
    await db.close();
    await testDatabase.drop();
  });

  const columns = Object.keys(orderBook.columns).filter((name) => name !== 'items');
  const order = (orderId: string, where: RowFilter): AnswerQuery => ({
    shape: orderShape,
    reads: [{ kind: 'row', projection: orderBook, columns, by: orderBook.keyColumns, key: [orderId], where }],
  });
  const orderShape: AnswerQuery['shape'] = {
    roots: [
      ['o', { kind: 'row', read: 0, row: columns.map((name) => [name, { kind: 'column', name, members: null }]) }],
    ],
  };

  test('a look-up says the same alone as together with others', async () => {
    const answer = createAnswers(db, readSchema);
    await fc.assert(
      fc.asyncProperty(rowsOf(orderBook, { maxLength: 5 }), fc.constantFrom('gt', 'lte'), async (rows, operator) => {
        await db.query({ text: `delete from ${readSchema}.${orderBook.tableName}` });
        if (rows.length > 0) await createReadTable(orderBook, readSchema).upsert(db, rows);
        const where: RowFilter = { kind: 'compare', column: 'units', operator, value: 0 };
        const asked = ['nobody', ...rows.map(({ orderId }) => String(orderId))].map((id) => order(id, where));
        const alone: string[] = [];
        for (const query of asked) alone.push(await answer(query));
        const twice = [...asked, ...asked];
        expect(await Promise.all(twice.map((query) => answer(query)))).toEqual([...alone, ...alone]);
      }),
      { numRuns: effort(20, 5) },
    );
  });

  test('a look-up that is alone again and again has a plan that is kept', async () => {
    const answer = createAnswers(db, readSchema);
    const table = `${readSchema}.${balanceV1.tableName}`;
    await db.query({
      text: `insert into ${table} select i, 'Ada', 0, 0 from generate_series(1, 5000) i`,
    });
    await db.query({ text: `analyze ${table}` });
    for (let times = 0; times < 20; times++) await answer(lookUp('a'));
    const plans = await db.query<{ kept: bigint }>({
      text: `
        select generic_plans as kept
        from pg_prepared_statements
        where statement like '%balance_v1%'`,
    });
    expect(plans.map(({ kept }) => Number(kept) > 0)).toEqual([true]);
  });
});
