import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { anonymous, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { createGuard } from '../../../src/schema/access/guard.ts';
import { type SchemaUnderTest, schemaUnderTest } from '../schema-under-test.ts';

let tested: SchemaUnderTest;

beforeAll(async () => {
  tested = schemaUnderTest();
  await tested.pack({
    a: {
      remarks: ['fragile', 'up'],
      items: [{ sku: 'mug', quantity: 2, price: '7.5' }],
      extra: { anything: [1, 'two'] },
    },
    b: { remarks: ['up'], items: [{ sku: 'pen', quantity: 1, price: '1' }], extra: null },
    c: { remarks: [], items: [], extra: { anything: [] } },
  });
  for (const [id, courier] of Object.entries({ a: 'Zoë 50%', b: 'ZOË 500' }))
    await tested.run('mutation ($input: ShipParcelInput!) { shipParcel(input: $input) { position } }', {
      input: { parcelId: id, courier },
    });
});

async function found(where: string): Promise<string> {
  const { parcels } = await tested.answer(`{ parcels(where: ${where}) { nodes { parcelId } } }`);
  return (parcels as { nodes: { parcelId: string }[] }).nodes.map(({ parcelId }) => parcelId).join('');
}

test.each([
  ['{ remarks: { has: "up" } }', 'ab'],
  ['{ remarks: { hasEvery: ["up", "fragile"] } }', 'a'],
  ['{ remarks: { hasEvery: [] } }', 'abc'],
  ['{ remarks: { hasSome: ["fragile", "down"] } }', 'a'],
  ['{ remarks: { hasSome: [] } }', ''],
  ['{ not: { remarks: { has: "up" } } }', 'c'],
  ['{ labels: { has: Gift } }', ''],
  ['{ courier: { contains: "50%" } }', 'a'],
  ['{ courier: { contains: "ZOË" } }', 'b'],
  ['{ courier: { endsWith: "50%" } }', 'a'],
  ['{ not: { courier: { endsWith: "50%" } } }', 'bc'],
  ['{ courier: { ilike: "zoë%" } }', 'ab'],
  ['{ courier: { ilike: "%50\\\\%" } }', 'a'],
  ['{ not: { courier: { ilike: "zoë%" } } }', 'c'],
  ['{ items: { contains: [{ sku: "mug" }] } }', 'a'],
  ['{ items: { contains: [{ sku: "mug", price: "7.50" }] } }', 'a'],
  ['{ items: { contains: [{ sku: "mug", quantity: 1 }] } }', ''],
  ['{ extra: { contains: { anything: [1] } } }', 'a'],
  ['{ extra: { contains: { anything: ["two", 1] }, isNull: false } }', 'a'],
])('`where: %s` finds rows that contain it', async (where, expected) => {
  expect(await found(where)).toBe(expected);
});

describe('a filter that no index supports, or that no row can match, is bad input', () => {
  test.each([
    ['{ courier: { contains: "50" } }', /fewer than 3 characters in a row/],
    ['{ courier: { endsWith: "50" } }', /fewer than 3 characters in a row/],
    ['{ courier: { ilike: "%a_b%" } }', /fewer than 3 characters in a row/],
    ['{ courier: { ilike: "abc\\\\" } }', /ends with a backslash/],
    ['{ extra: { contains: {} } }', /no value in it/],
    ['{ items: { contains: [{}] } }', /no value in it/],
    ['{ items: { contains: [{ colour: "red" }] } }', /"colour" is not defined by type "ParcelItemContains"/],
    ['{ items: { contains: [{ quantity: "two" }] } }', /Int cannot represent non-integer value: "two"/],
    ['{ items: { contains: [{ sku: null }] } }', /'items\[0\].sku' can't be null/],
    ['{ extra: { contains: null } }', /'where.extra.contains' is null/],
    ['{ remarks: { has: null } }', /is null/],
    [`{ remarks: { hasSome: [${'"x", '.repeat(101)}] } }`, /more than 100 conditions/],
  ])('%s', async (where, message) => {
    const { errors } = await tested.run(`{ parcels(where: ${where}) { nodes { parcelId } } }`);
    expect(errors?.[0]).toMatchObject({ message: expect.stringMatching(message) });
  });
});

test("lists and JSON can't be ordered or grouped by", async () => {
  const { errors } = await tested.run('{ parcels(orderBy: [{ remarks: ASC }]) { nodes { parcelId } } }');
  expect(errors?.[0]?.message).toMatch(/"remarks" is not defined/);
  const grouped = await tested.run('{ parcelsGrouped(by: [remarks]) { count } }');
  expect(grouped.errors?.[0]?.message).toMatch(/"remarks" does not exist/);
});

test('access rules have the same operators', () => {
  const family = defineEvents('note', { Written: z.object({}) });
  const notes = defineProjection({
    name: 'note',
    version: 1,
    events: family,
    table: {
      noteId: t.text().primaryKey(),
      title: t.text().index({ search: true }),
      readers: t.list(t.text()),
      prices: t.list(t.decimal(8, 2)),
      extra: t.json<{ open?: boolean }>(),
    },
    key: (event) => event.streamId,
    evolve: { Written: () => null },
    access: {
      public: true,
      rows: ({ id }) => ({
        or: [
          { readers: { has: id ?? 'guest' } },
          { extra: { contains: { open: true } } },
          { title: { ilike: 'open%' } },
        ],
        prices: { hasSome: ['12.50'] },
      }),
    },
  });
  expect(createGuard(anonymous, 'public').rowsOf(notes)).toEqual({
    kind: 'and',
    filters: [
      {
        kind: 'or',
        filters: [
          { kind: 'holds', column: 'readers', value: ['guest'] },
          { kind: 'holds', column: 'extra', value: { open: true } },
          { kind: 'ilike', column: 'title', value: 'open%' },
        ],
      },
      { kind: 'or', filters: [{ kind: 'holds', column: 'prices', value: ['12.5'] }] },
    ],
  });
});
