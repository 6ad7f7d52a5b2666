import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ResponseQuery } from '../../../src/projections/queries/response-query.ts';
import type { RowFilter } from '../../../src/projections/queries/row-query.ts';
import { createCompiledReads } from '../../../src/runtime/reads/compiled-reads.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import type { Statement } from '../../../src/store/statements/statement.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { orderBook, rowsOf } from '../../store/queries/order-book.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

/** A database that returns each key itself, except one that is missing. */
function echo() {
  const statements: Statement[] = [];
  return {
    statements,
    async query<Row extends object>(statement: Statement): Promise<Row[]> {
      statements.push(statement);
      const keys = statement.values?.find(Array.isArray) as readonly string[] | undefined; // several keys are bound as one array
      if (!keys) return [{ answer: JSON.stringify({ b: keyOf(statement) }) }] as never;
      const rows = keys.map((key, index) => ({ place: BigInt(index + 1), answer: JSON.stringify(key) }));
      return rows.filter(({ answer }) => answer !== '"nobody"').reverse() as never;
    },
  };
}

/** The bound value: the only one, or the last. */
const keyOf = ({ values }: Statement) => values?.find(Array.isArray) ?? values?.at(-1);

const shape = {
  roots: [['b', { kind: 'row', read: 0, row: [['t', { kind: 'constant', json: '"Balance"' }]] }]],
} as const;
const lookUp = (key: string, where: RowFilter | null = null): ResponseQuery => ({
  shape,
  reads: [{ kind: 'row', projection: balanceV1, columns: [], by: balanceV1.keyColumns, key: [key], where }],
});

test('key lookups of one turn share a statement, and each gets its own row', async () => {
  const db = echo();
  const answer = createCompiledReads(db, 'read_models', 10);
  const keys = ['a', 'nobody', 'b', 'a'];
  const answers = await Promise.all(keys.map((key) => answer(lookUp(key))));
  expect(answers).toEqual(['{"b":"a"}', '{"b":null}', '{"b":"b"}', '{"b":"a"}']);
  expect(db.statements.map(({ values }) => values)).toEqual([[keys]]);
});

test('no statement is shared by lookups that may not read the same rows, or has more than a thousand keys', async () => {
  const db = echo();
  const answer = createCompiledReads(db, 'read_models', 10);
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

const pages: ResponseQuery['shape'] = {
  roots: [
    [
      'p',
      { kind: 'page', read: 0, page: [['nodes', { kind: 'nodes', row: [['t', { kind: 'constant', json: '1' }]] }]] },
    ],
  ],
};
const page = (owner: string, more: readonly RowFilter[] = []): ResponseQuery => ({
  shape: pages,
  reads: [
    {
      kind: 'page',
      projection: balanceV1,
      order: '',
      related: null,
      query: {
        where: { kind: 'and', filters: [{ kind: 'compare', column: 'owner', operator: 'eq', value: owner }, ...more] },
        orderBy: [],
        columns: ['owner'],
        direction: 'forward',
        limit: 20,
        after: null,
        before: null,
      },
    },
  ],
});

/** A database that returns for each list its owner, when the test lets it respond. */
function lists() {
  const asked: (readonly unknown[])[] = [];
  const waiting: (() => void)[] = [];
  return {
    asked,
    /** Responds to the first waiting statement. */
    answerNext: () => waiting.shift()?.(),
    query: <Row extends object>({ values = [] }: Statement): Promise<Row[]> => {
      asked.push(values);
      const row = Object.fromEntries(values.map((value, index) => [`answer_${index}`, value]));
      return new Promise((resolve) => waiting.push(() => resolve([row as Row])));
    },
  };
}

test('lists that wait for a connection are sent together, four at most, each with its own response', async () => {
  const db = lists();
  const answer = createCompiledReads(db, 'read_models', 1);
  const first = answer(page('a'));
  await until(() => db.asked.length === 1);
  const others = ['b', 'c', 'd', 'e', 'f', 'g'].map((owner) => answer(page(owner)));
  const poorer = answer(page('h', [{ kind: 'compare', column: 'amount', operator: 'lt', value: 5n }]));
  db.answerNext();
  expect(await first).toBe('a');
  await until(() => db.asked.length === 2);
  expect(db.asked[1]).toEqual(['b', 'c', 'd', 'e']);
  db.answerNext();
  expect(await Promise.all(others.slice(0, 4))).toEqual(['b', 'c', 'd', 'e']);
  await until(() => db.asked.length === 3);
  // A list of another form, which came before the remaining ones get their second turn.
  expect(db.asked[2]?.[0]).toBe('h');
  db.answerNext();
  expect(await poorer).toBe('h');
  await until(() => db.asked.length === 4);
  expect(db.asked[3]).toEqual(['f', 'g']);
  db.answerNext();
  expect(await Promise.all(others.slice(4))).toEqual(['f', 'g']);
});

test('a failed statement fails all lookups that share it', async () => {
  const answer = createCompiledReads({ query: () => Promise.reject(new Error('gone')) }, 'read_models', 10);
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
  const order = (orderId: string, where: RowFilter): ResponseQuery => ({
    shape: orderShape,
    reads: [{ kind: 'row', projection: orderBook, columns, by: orderBook.keyColumns, key: [orderId], where }],
  });
  const orderShape: ResponseQuery['shape'] = {
    roots: [
      ['o', { kind: 'row', read: 0, row: columns.map((name) => [name, { kind: 'column', name, members: null }]) }],
    ],
  };

  test('a lookup returns the same alone as in a batch', async () => {
    const answer = createCompiledReads(db, readSchema, 10);
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

  test('lists of one form return the same alone as in a batch', async () => {
    const answer = createCompiledReads(db, readSchema, 1);
    const list = (units: number, limit: number): ResponseQuery => ({
      shape: listShape,
      reads: [
        {
          kind: 'page',
          projection: orderBook,
          order: 'units',
          related: null,
          query: {
            where: { kind: 'compare', column: 'units', operator: 'gte', value: units },
            orderBy: [{ column: 'units', direction: 'desc', nulls: 'last' }],
            columns,
            direction: 'forward',
            limit,
            after: null,
            before: null,
          },
        },
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        rowsOf(orderBook, { maxLength: 8 }),
        fc.array(fc.tuple(fc.integer({ min: -5, max: 5 }), fc.constantFrom(1, 3)), { minLength: 1, maxLength: 9 }),
        async (rows, asked) => {
          await db.query({ text: `delete from ${readSchema}.${orderBook.tableName}` });
          if (rows.length > 0) await createReadTable(orderBook, readSchema).upsert(db, rows);
          const queries = asked.map(([units, limit]) => list(units, limit));
          const alone: string[] = [];
          for (const query of queries) alone.push(await answer(query));
          expect(await Promise.all(queries.map((query) => answer(query)))).toEqual(alone);
        },
      ),
      { numRuns: effort(20, 5) },
    );
  });

  const listShape: ResponseQuery['shape'] = {
    roots: [
      [
        'l',
        {
          kind: 'page',
          read: 0,
          page: [
            ['nodes', { kind: 'nodes', row: columns.map((name) => [name, { kind: 'column', name, members: null }]) }],
            ['pageInfo', { kind: 'pageInfo', members: [['endCursor', { kind: 'endCursor' }]] }],
          ],
        },
      ],
    ],
  };

  test('a repeated single-key lookup gets a cached plan', async () => {
    const table = `${readSchema}.${balanceV1.tableName}`;
    await db.query({
      text: `insert into ${table} select i, 'Ada', 0, 0 from generate_series(1, 5000) i`,
    });
    await db.query({ text: `analyze ${table}` });
    const program = join(import.meta.dirname, 'lone-look-ups.ts');
    const said = execFileSync(process.execPath, [program, testDatabase.url], { encoding: 'utf8' });
    const [kept, ...others] = JSON.parse(said);
    expect(kept).toBeGreaterThan(0);
    expect(others).toEqual([]);
  });
});
