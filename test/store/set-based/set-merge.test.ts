import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { beginning, type Columns, defineEvents, defineProjection, globalPosition, t } from '../../../src/index.ts';
import type { MergeRule } from '../../../src/projections/projection/sql-fold.ts';
import { createSetMerge } from '../../../src/store/set-based/set-merge.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';

const probe = defineEvents('probe', { Noted: z.object({ value: z.string().nullable() }) });

const { db, log } = await databaseOfFile(probe);
let next = 0;

beforeAll(async () => {
  await createReadSchema(db, 'read_models');
});
beforeEach(() => {
  next++;
});

/** A table with one column beside the key. Each note is folded into it: `expression` over `value`, a text. */
async function probed(value: Columns[string], expression: string, rule: MergeRule = 'replace', keys = true) {
  const projection = defineProjection({
    name: `probe_${next}`,
    version: 1,
    events: probe,
    table: { id: t.text().primaryKey(), value },
    evolveSql: {
      events: ['Noted'],
      rows: `select stream_id as id, ${expression} as value from (select *, payload->>'value' as value from batch) noted`,
      merge: { value: rule },
    },
  });
  await createReadTable(projection, 'read_models').create(db);
  const table = `"read_models"."${projection.tableName}"`;
  const merge = createSetMerge(projection, projection.sqlFold ?? expect.unreachable(), table, db);
  let after = beginning;
  return {
    async note(...values: (string | null)[]) {
      const stream = { family: probe, streamId: `stream-${next}` };
      for (const one of values) await log.append({ ...stream, events: [{ type: 'Noted', payload: { value: one } }] });
      const upTo = await log.horizon();
      const from = values.length > 0 ? globalPosition(upTo - BigInt(values.length)) : after;
      after = upTo;
      return merge.run(db, { after: from, upTo, upcast: [] }, { keys });
    },
    async value() {
      const [row] = await db.query<{ value: unknown }>({ text: `select value::text from ${table}` });
      return row?.value;
    },
  };
}

// A live version asks for the keys that it has written, and a version being built does not: these are two statements.
const bothWays = [true, false];

describe.each(bothWays)('a value that PostgreSQL would round or cut is refused, with keys: %j', (keys) => {
  test.each([
    [
      'a decimal with too many digits',
      t.decimal(10, 2),
      'value::numeric',
      '1.005',
      'a decimal with at most 2 digits after the point',
      '1.50',
    ],
    ['a fraction of an integer', t.integer(), 'value::numeric', '2.5', 'a whole number', '2.0'],
    ['a fraction of a bigint', t.bigint(), 'value::float8', '2.5', 'a whole number', '9007199254740993'],
    [
      'a time without end',
      t.timestamptz(),
      'value::timestamptz',
      'infinity',
      'a time from year 1 to 9999',
      '2026-01-31T12:00:00Z',
    ],
    ['a year before 1', t.date(), 'value::date', '0044-03-15 BC', 'a date from year 1 to 9999', '2026-01-31'],
    [
      'more bytes than are declared',
      t.bytes({ maxBytes: 2 }),
      "decode(value, 'hex')",
      '00ff00',
      'at most 2 bytes',
      '00ff',
    ],
    [
      'a text too long for its index',
      t.text().index(),
      'value',
      'x'.repeat(1025),
      'at most 1024 bytes',
      'x'.repeat(1024),
    ],
  ] as const)('%s', async (_, column, expression, wrong, expected, right) => {
    const { note } = await probed(column, expression, 'replace', keys);
    expect(await note(right)).toMatchObject({ events: 1, rows: 1 });
    expect(await note(right)).toMatchObject({ events: 1, rows: 1 });
    await expect(note(wrong)).rejects.toMatchObject({
      code: 'DATABASE_ERROR',
      message: expect.stringContaining(`evolveSql returns a value for 'value' that does not fit: expected ${expected}`),
      fields: { sqlState: '22000' },
    });
  });

  test('a null, a value outside of an enum and a number that is too large are refused, too', async () => {
    const columns = [t.text(), t.enum(['a', 'b']), t.decimal(3, 2)] as const;
    const [text, enumerated, small] = await Promise.all(
      columns.map((column, index) => {
        next++;
        return probed(column, index === 2 ? 'value::numeric' : 'value', 'replace', keys);
      }),
    );
    await expect(text?.note(null)).rejects.toMatchObject({ fields: { sqlState: '23502' } });
    await expect(enumerated?.note('c')).rejects.toMatchObject({ fields: { sqlState: '23514' } });
    await expect(small?.note('10')).rejects.toMatchObject({ fields: { sqlState: '22003' } });
  });
});

describe.each(bothWays)('a rule of the merge, with keys: %j', (keys) => {
  test.each<[MergeRule, (string | null)[], string | null]>([
    ['add', ['1', '2', null, '3'], '6.00'],
    ['add', [null, '2'], '2.00'],
    ['min', ['3', null, '2', '4'], '2.00'],
    ['max', ['3', null, '5', '4'], '5.00'],
    ['first', [null, '3', '4', null], '3.00'],
    ['last', ['3', '4', null], '4.00'],
    ['replace', ['3', '4', null], null],
    [{ sql: 'coalesce(old.value, 0) * 10 + new.value -- digits' }, ['1', '2', '3'], '123.00'],
  ])('%j', async (rule, values, expected) => {
    const { note, value } = await probed(t.decimal(10, 2).nullable(), 'value::numeric', rule, keys);
    for (const one of values) await note(one);
    expect(await value()).toBe(expected);
  });
});

test.each([
  [true, /^21000$/],
  [false, /^(21000|23505)$/], // PostgreSQL 17 and newer merge differently, and report a missing row differently
])('a key that occurs twice in a batch fails the batch, with keys: %j', async (keys, sqlState) => {
  const { note } = await probed(t.text(), 'value', 'replace', keys);
  await expect(note('a', 'b')).rejects.toMatchObject({ fields: { sqlState: expect.stringMatching(sqlState) } });
  await note('a');
  await expect(note('a', 'b')).rejects.toMatchObject({ fields: { sqlState: '21000' } });
});

test('the keys are returned in their canonical form', async () => {
  const { note } = await probed(t.text(), 'value');
  expect(await note('a')).toEqual({ events: 1, rows: 1, upserted: [`["stream-${next}"]`], deleted: [] });
  expect(await note()).toEqual({ events: 0, rows: 0, upserted: [], deleted: [] });
});
