import { expect, test } from 'vitest';
import { type SchemaUnderTest, schemaUnderTest } from '../schema-under-test.ts';

const letters = 'abcdefghij'.split('');

/** Ten parcels: a has the most pieces, j the fewest; every other one is insured. */
async function tenParcels(options?: { maxPageSize: number }): Promise<SchemaUnderTest> {
  const tested = schemaUnderTest(undefined, options);
  await tested.pack(
    Object.fromEntries(
      letters.map((id, index) => [
        id,
        {
          pieces: 10 - index,
          weight: `${Math.floor(index / 3)}.5`,
          insuredFor: index % 2 === 0 ? null : `${index}.00`,
          fragile: index < 5,
          packedOn: `2026-02-0${1 + (index % 9)}`,
          grams: String(2n ** 53n + BigInt(index)),
        },
      ]),
    ),
  );
  return tested;
}

async function ids({ answer }: SchemaUnderTest, args: string, variables?: Record<string, unknown>): Promise<string> {
  const { parcels } = await answer(
    `query ${variables ? '($where: ParcelFilter)' : ''} { parcels${args} { nodes { parcelId } } }`,
    variables,
  );
  return (parcels as { nodes: { parcelId: string }[] }).nodes.map((node) => node.parcelId).join('');
}

async function problem({ run }: SchemaUnderTest, args: string, variables?: Record<string, unknown>) {
  const document = `query ${variables ? '($where: ParcelFilter)' : ''} { parcels${args} { nodes { parcelId } } }`;
  const { errors } = await run(document, variables);
  return errors?.[0]?.message;
}

test('a list has edges, nodes, page info, and a count', async () => {
  const tested = await tenParcels();
  const { parcels } = await tested.answer(`{
    parcels(first: 2, orderBy: [{ pieces: ASC }]) {
      totalCount
      edges { cursor node { parcelId } }
      nodes { pieces }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }`);
  const [first, second] = (parcels as { edges: { cursor: string }[] }).edges.map((edge) => edge.cursor);
  expect(parcels).toEqual({
    totalCount: 10,
    edges: [
      { cursor: first, node: { parcelId: 'j' } },
      { cursor: second, node: { parcelId: 'i' } },
    ],
    nodes: [{ pieces: 1 }, { pieces: 2 }],
    pageInfo: { hasNextPage: true, hasPreviousPage: false, startCursor: first, endCursor: second },
  });
  expect(tested.services.reads.map((read) => read.kind)).toEqual(['count', 'findPage']);
});

test('an unselected page or count is not read', async () => {
  const tested = await tenParcels();
  await tested.answer('{ parcels { totalCount } }');
  await tested.answer('{ parcels { pageInfo { hasNextPage } } }');
  await tested.answer('{ parcels { edges { node { weight } } nodes { pieces } } }');
  expect(tested.services.reads).toEqual([
    { kind: 'count', version: 'parcel@1' },
    { kind: 'findPage', version: 'parcel@1', columns: [] },
    { kind: 'findPage', version: 'parcel@1', columns: ['weight', 'pieces'] },
  ]);
});

test('an empty list has no cursors', async () => {
  const { answer } = schemaUnderTest();
  expect(
    await answer('{ parcels { edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }'),
  ).toEqual({
    parcels: {
      edges: [],
      pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
    },
  });
});

test('a page has 20 rows by default, or the largest page size if that is less', async () => {
  const many = schemaUnderTest();
  await many.pack(Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, {}])));
  expect((await many.answer('{ parcels { nodes { parcelId } } }')).parcels).toHaveProperty('nodes.length', 20);
  expect(await ids(await tenParcels({ maxPageSize: 3 }), '')).toBe('abc');
});

test.each([
  ['(first: 51)', "'first' is 51; a page has at most 50 rows. Ask for the next page."],
  ['(last: 51)', "'last' is 51; a page has at most 50 rows. Ask for the next page."],
  ['(first: -1)', "'first' is -1; it can't be negative."],
  ['(first: 1, last: 1)', "Give 'first' or 'last', not both."],
  ['(orderBy: [{ pieces: ASC, weight: ASC }])', 'OneOf Input Object "ParcelOrder" must specify exactly one key.'],
  ['(orderBy: [{ note: ASC }])', 'Field "note" is not defined by type "ParcelOrder".'],
  ['(where: { note: { eq: "x" } })', 'Field "note" is not defined by type "ParcelFilter".'],
])('%s is refused', async (args, message) => {
  expect(await problem(await tenParcels(), args)).toContain(message);
});

test('null arguments are the same as none', async () => {
  const tested = await tenParcels();
  expect(await ids(tested, '(first: 0)')).toBe('');
  expect(await ids(tested, '(first: null, last: null, after: null, before: null, where: null, orderBy: null)')).toBe(
    letters.join(''),
  );
});

test.each([
  ['{ pieces: ASC }', 'jihgfedcba'],
  ['{ pieces: DESC }', 'abcdefghij'],
  ['{ weight: DESC }, { pieces: ASC }', 'jihgfedcba'],
  ['{ weight: DESC }', 'jghidefabc'],
  ['{ fragile: DESC }, { weight: DESC }, { parcelId: DESC }', 'edcbajihgf'],
  ['{ insuredFor: ASC }', 'bdfhjacegi'],
  ['{ insuredFor: DESC }', 'acegijhfdb'],
  ['{ insuredFor: DESC_NULLS_LAST }', 'jhfdbacegi'],
  ['{ insuredFor: ASC_NULLS_FIRST }', 'acegibdfhj'],
  ['{ pieces: ASC }, { pieces: DESC }', 'jihgfedcba'],
])('orderBy [%s] gives %s', async (orderBy, expected) => {
  const tested = await tenParcels();
  expect(await ids(tested, `(orderBy: [${orderBy}])`)).toBe(expected);
  expect(await pages(tested, orderBy, 3)).toBe(expected);
  expect(await pagesFromTheEnd(tested, orderBy, 3)).toBe(expected);
});

type Page = { nodes: { parcelId: string }[]; pageInfo: Record<string, string & boolean> };

/** All pages, one after another. */
async function pages({ answer }: SchemaUnderTest, orderBy: string, first: number): Promise<string> {
  let after: string | null = null;
  let found = '';
  for (;;) {
    const { parcels } = await answer(
      `query ($after: String) { parcels(first: ${first}, after: $after, orderBy: [${orderBy}]) { nodes { parcelId } pageInfo { hasNextPage endCursor } } }`,
      { after },
    );
    const page = parcels as Page;
    found += page.nodes.map((node) => node.parcelId).join('');
    if (!page.pageInfo.hasNextPage) return found;
    after = page.pageInfo.endCursor ?? null;
  }
}

async function pagesFromTheEnd({ answer }: SchemaUnderTest, orderBy: string, last: number): Promise<string> {
  let before: string | null = null;
  let found = '';
  for (;;) {
    const { parcels } = await answer(
      `query ($before: String) { parcels(last: ${last}, before: $before, orderBy: [${orderBy}]) { nodes { parcelId } pageInfo { hasPreviousPage startCursor } } }`,
      { before },
    );
    const page = parcels as Page;
    found = page.nodes.map((node) => node.parcelId).join('') + found;
    if (!page.pageInfo.hasPreviousPage) return found;
    before = page.pageInfo.startCursor ?? null;
  }
}

test.each([
  ['{}', 'abcdefghij'],
  ['{ parcelId: { eq: "c" } }', 'c'],
  ['{ parcelId: { in: ["c", "a", "z"] } }', 'ac'],
  ['{ parcelId: { in: [] } }', ''],
  ['{ parcelId: { notIn: [] } }', 'abcdefghij'],
  ['{ parcelId: { notIn: ["c", "a"] } }', 'bdefghij'],
  ['{ parcelId: { startsWith: "c" } }', 'c'],
  ['{ pieces: { gt: 3, lte: 6 } }', 'efg'],
  ['{ pieces: { lt: 3 }, fragile: { eq: false } }', 'ij'],
  ['{ weight: { gte: 2.5 } }', 'ghij'],
  ['{ weight: { eq: "0.50000" } }', 'abc'],
  ['{ weight: { lt: "0.50001" } }', 'abc'],
  ['{ grams: { gt: "9007199254740999" } }', 'ij'],
  ['{ grams: { gte: 9007199254740999 } }', 'hij'],
  ['{ packedOn: { lt: "2026-02-02" } }', 'aj'],
  ['{ status: { ne: Packed } }', ''],
  ['{ status: { in: [Packed, Lost] } }', 'abcdefghij'],
  ['{ insuredFor: { isNull: true } }', 'acegi'],
  ['{ insuredFor: { isNull: false, lt: 4 } }', 'bd'],
  ['{ insuredFor: { ne: "1" } }', 'acdefghij'],
  ['{ not: { insuredFor: { lt: 4 } } }', 'acefghij'],
  ['{ or: [{ pieces: { eq: 1 } }, { pieces: { eq: 10 } }] }', 'aj'],
  ['{ or: [] }', ''],
  ['{ and: [] }', 'abcdefghij'],
  ['{ or: [{}] }', 'abcdefghij'],
  ['{ and: [{ pieces: { gt: 2 } }, { not: { or: [{ fragile: { eq: true } }, { weight: { eq: 1.5 } }] } }] }', 'gh'],
  ['{ fragile: { eq: true }, or: [{ pieces: { eq: 10 } }, { pieces: { eq: 1 } }] }', 'a'],
  ['{ trackingId: { eq: "0189DD0A-97A5-7C3B-8A5E-9A6B8F6F0B11" } }', 'abcdefghij'],
  ['{ shippedAt: { gt: "2026-01-31T12:00:00+02:00" } }', ''],
])('where %s finds "%s"', async (where, expected) => {
  expect(await ids(await tenParcels(), `(where: ${where})`)).toBe(expected);
});

test('a filter in a variable has the same effect', async () => {
  const where = { pieces: { in: [1, 2] }, weight: { gte: '2.5' }, grams: { gt: '1' } };
  expect(await ids(await tenParcels(), '(where: $where)', { where })).toBe('ij');
});

test.each([
  [{ pieces: null }, "'where.pieces' is null; leave it out instead."],
  [{ pieces: { eq: null } }, "'where.pieces.eq' is null; leave it out instead."],
  [{ courier: { eq: null } }, "'where.courier.eq' is null; leave it out, or use 'isNull'."],
  [{ not: { or: [{ and: null }] } }, "'where.not.or[0].and' is null; leave it out instead."],
  [{ pieces: {} }, "'where.pieces' has no operator; leave the condition out instead."],
])('null or nothing in a filter is refused, because a forgotten variable would match every row: %j', async (where, message) => {
  expect(await problem(await tenParcels(), '(where: $where)', { where })).toBe(message);
});

test.each([
  [{ weight: { eq: 1.5 } }, "Decimal expects an exact decimal as a string, such as '12.50'"],
  [{ weight: { eq: '1e3' } }, "Decimal expects an exact decimal as a string, such as '12.50'"],
  [{ grams: { eq: '9223372036854775808' } }, 'BigInt expects a whole number of 64 bits'],
  [{ grams: { eq: 2 ** 60 } }, 'BigInt expects a whole number of 64 bits'],
  [{ packedOn: { eq: '2026-02-30' } }, 'Date expects a day such as \'2026-01-31\', found "2026-02-30"'],
  [{ shippedAt: { eq: '2026-02-01T12:00:00' } }, 'DateTime expects a time with its zone'],
  [{ shippedAt: { eq: '2026-02-01T12:00:00.123456789Z' } }, 'to the microsecond at most, found'],
  [{ trackingId: { eq: 'abc' } }, 'UUID expects a UUID'],
  [{ status: { eq: 'Found' } }, 'Value "Found" does not exist in "ParcelStatus" enum'],
])('a value that the column could never hold is refused: %j', async (where, message) => {
  expect(await problem(await tenParcels(), '(where: $where)', { where })).toContain(message);
});

test('a filter is limited in depth and in conditions', async () => {
  const tested = await tenParcels();
  const nested = (depth: number): object => (depth === 0 ? { pieces: { eq: 1 } } : { not: nested(depth - 1) });
  expect(await problem(tested, '(where: $where)', { where: nested(9) })).toBeUndefined();
  expect(await problem(tested, '(where: $where)', { where: nested(10) })).toBe(
    "'where' is nested more than 10 levels deep.",
  );
  const many = (count: number) => ({ or: Array.from({ length: count }, () => ({ pieces: { eq: 1 } })) });
  expect(await problem(tested, '(where: $where)', { where: many(100) })).toBeUndefined();
  expect(await problem(tested, '(where: $where)', { where: many(101) })).toBe("'where' has more than 100 conditions.");
});

test('a count stops at its limit', async () => {
  const tested = await tenParcels();
  expect(
    await tested.answer(`{
      parcels(where: { pieces: { gt: 1 } }) { atMost: totalCount(upTo: 3) more: totalCount(upTo: 100) totalCount }
    }`),
  ).toEqual({ parcels: { atMost: 3, more: 9, totalCount: 9 } });
  const { errors } = await tested.run('{ parcels { totalCount(upTo: 0) } }');
  expect(errors?.[0]?.message).toBe("'upTo' is 0; count up to 1 at least.");
});
