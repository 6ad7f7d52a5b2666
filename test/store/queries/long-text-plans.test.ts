import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';
import type { PageQuery, RowFilter } from '../../../src/projections/queries/row-query.ts';
import { relatedTarget } from '../../../src/projections/queries/row-query.ts';
import { countRelatedRows, findRelatedPages } from '../../../src/store/queries/related-rows.ts';
import { findPage } from '../../../src/store/queries/row-queries.ts';
import { createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { createReadModelWriter, readSchema } from '../../support/read-model-writer.ts';

const { db } = await databaseOfFile();
const notes = defineEvents('note', { Written: z.object({}) });
const note = defineProjection({
  name: 'note',
  version: 1,
  events: notes,
  table: { id: t.text().primaryKey(), body: t.text().index({ long: true }), units: t.integer() },
  key: ({ streamId }) => streamId,
  evolve: { Written: () => null },
});

/** The longest texts here have more bytes than an index entry may have. */
const bodyOf = (n: number) => `${n} ${'long '.repeat(n % 1000 === 0 ? 1000 : 3)}${n}`;

beforeAll(async () => {
  await createReadModelWriter(db, note);
  await db.query({
    text: `
      insert into ${readSchema}.note_v1 (id, body, units)
      select 'n' || n, n % 50000 || ' ' || repeat('long ', case when n % 1000 = 0 then 1000 else 3 end) || n % 50000, n
      from generate_series(1, 100000) as n`,
  });
  await db.query({ text: `vacuum analyze ${readSchema}.note_v1` });
});

/** The plan that a statement has with any values, as when it is prepared. */
let plan = '';
let statements = 0;
const explaining = {
  query: async <R extends object>({
    text,
    values = [],
  }: {
    text: string;
    values?: readonly unknown[];
  }): Promise<R[]> => {
    const literal = (value: unknown): string =>
      Array.isArray(value) ? `array[${value.map(literal).join(', ')}]` : `'${String(value)}'`;
    const name = `planned_${++statements}`;
    const given = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`;
    const lines = await db.transaction(async (tx) => {
      await tx.query({ text: 'set local plan_cache_mode = force_generic_plan' });
      await tx.query({ text: `prepare ${name} as ${text}` });
      return tx.query<{ 'QUERY PLAN': string }>({ text: `explain execute ${name}${given}` });
    });
    plan = lines.map((line) => line['QUERY PLAN']).join('\n');
    return [];
  },
};
const everything: PageQuery = {
  where: null,
  orderBy: [],
  columns: ['id'],
  direction: 'forward',
  limit: 20,
  after: null,
  before: null,
};
const byIndex =
  /Index (Only )?Scan (Backward )?(using|on) note_v1_body__left.*\n\s+Index Cond: .*"left"\((related_1\.)?body, 256\)/;

test.each<[string, RowFilter]>([
  ['eq', { kind: 'compare', column: 'body', operator: 'eq', value: bodyOf(777) }],
  ['in', { kind: 'in', column: 'body', values: [bodyOf(777), bodyOf(3000), 'none'] }],
  ['a range', { kind: 'and', filters: [range('gt', '77'), range('lte', '778')] }],
  ['startsWith', { kind: 'startsWith', column: 'body', value: '777 ' }],
  ['a long startsWith', { kind: 'startsWith', column: 'body', value: bodyOf(3000).slice(0, 2000) }],
])('the index of a long text serves %s, whatever the values are', async (_, where) => {
  await findPage(explaining, readSchema, note, { ...everything, where });
  expect(plan).toMatch(byIndex);
});

test('the index of a long text serves pages of its order, in both directions', async () => {
  for (const direction of ['forward', 'backward'] as const) {
    const orderBy = [{ column: 'body', direction: 'asc', nulls: 'last' } as const];
    await findPage(explaining, readSchema, note, { ...everything, orderBy, direction });
    expect(plan).toMatch(/note_v1_body__left/);
    expect(plan).not.toMatch(/Sort/);
    const place = direction === 'forward' ? { after: ['5', 'n5'] } : { before: ['5', 'n5'] };
    await findPage(explaining, readSchema, note, { ...everything, orderBy, direction, ...place });
    expect(plan).toMatch(byIndex);
    expect(plan).not.toMatch(/ Sort/);
  }
});

test('the index of a long text serves relations, filters across them and their counts', async () => {
  const columns = [['id', 'body']] as const;
  const related: RowFilter = {
    kind: 'related',
    quantifier: 'some',
    target: relatedTarget(note),
    columns,
    filter: null,
  };
  const one: RowFilter = { kind: 'compare', column: 'id', operator: 'eq', value: 'n1' };
  await findPage(explaining, readSchema, note, { ...everything, where: { kind: 'and', filters: [one, related] } });
  expect(plan).toMatch(byIndex);
  await findRelatedPages(explaining, readSchema, note, 'body', [bodyOf(1), bodyOf(2)], everything);
  expect(plan).toMatch(byIndex);
  for (const upTo of [null, 10]) {
    await countRelatedRows(explaining, readSchema, note, 'body', [bodyOf(1), bodyOf(2)], null, upTo);
    expect(plan).toMatch(byIndex);
  }
});

test('texts that differ after their 256th character are told apart, and a long one is written where an index would refuse it', async () => {
  const start = 'é'.repeat(256);
  const random = Array.from({ length: 20_000 }, (_, at) => String.fromCodePoint(0x4e00 + ((at * 7919) % 20_000)));
  const bodies = [`${start}b`, `${start}a`, start, random.join('')];
  const rows = bodies.map((body, index) => ({ id: `x${index}`, body, units: -1 }));
  await createReadTable(note, readSchema).upsert(db, rows);
  for (const { id, body } of rows) {
    const where: RowFilter = {
      kind: 'and',
      filters: [
        { kind: 'compare', column: 'units', operator: 'eq', value: -1 },
        { kind: 'compare', column: 'body', operator: 'eq', value: body },
      ],
    };
    expect((await findPage(db, readSchema, note, { ...everything, where })).rows).toEqual([{ id }]);
  }
});

function range(operator: 'gt' | 'lte', value: string): RowFilter {
  return { kind: 'compare', column: 'body', operator, value };
}
