import fc from 'fast-check';

/** Random conditions over the read models in `things.ts`, and values that rows may have. */
export type Text = fc.Arbitrary<string>;

export const ids = Array.from({ length: 24 }, (_, index) => `thing-${index}${index % 5 === 0 ? ' "ä👍\\' : ''}`);
export const owners = ['ada', 'bo', 'Ça "va"?', 'd'];
/** The last two have their first 256 characters in common, and the last of these is two UTF-16 units. */
const longLabel = `${'é'.repeat(255)}😀`;
export const labels = ['north', 'south', 'Ünder', `${longLabel} b`, `${longLabel} a`];
export const days = ['0001-01-02', '2026-01-31', '9999-12-30'];
export const times = [
  '2026-01-31T12:00:00Z',
  '2026-01-31T12:00:00.5Z',
  '2026-01-31T12:00:00.123456Z',
  '0999-12-31T23:59:59.120000Z',
  '2026-01-31T12:00:00.000001Z',
];
export const amounts = ['0', '-0.5', '12.5', '1234567890123456.7891', '100', '-100.0001'];
export const bigs = ['0', '-9223372036854775808', '9223372036854775807', '42'];

export const seals = ['', 'AA==', 'CgA=', 'gP8=', Buffer.alloc(64, 7).toString('base64')];

export const jsonString = (value: string) => JSON.stringify(value);

export type TypeName = 'Thing' | 'Owner' | 'Place';

interface RandomType {
  /** Conditions over columns. */
  readonly conditions: readonly Text[];
  readonly one: Readonly<Record<string, TypeName>>;
  readonly many: Readonly<Record<string, TypeName>>;
  readonly orders: readonly string[];
}

export const types: Readonly<Record<TypeName, RandomType>> = {
  Thing: {
    conditions: [
      fc.constantFrom(...labels, 'x').map((value) => `label: { eq: ${jsonString(value)} }`),
      fc.constantFrom(...labels).map((value) => `label: { ne: ${jsonString(value)} }`),
      fc.constantFrom('n', 'Ü', '').map((value) => `label: { startsWith: ${jsonString(value)} }`),
      fc.constantFrom('rth', 'NDER', 'Ünder').map((value) => `label: { endsWith: ${jsonString(value)} }`),
      fc.boolean().map((value) => `label: { isNull: ${value} }`),
      fc.boolean().map((value) => `underId: { isNull: ${value} }`),
      fc.constantFrom('label: { in: $labels }', 'label: { notIn: $labels }', 'label: { in: [] }'),
      fc.constantFrom(...owners).map((value) => `ownerId: { eq: ${jsonString(value)} }`),
      fc
        .tuple(fc.constantFrom('lt', 'lte', 'gt', 'gte', 'eq', 'ne'), fc.integer({ min: 0, max: 5 }))
        .map(([operator, value]) => `count: { ${operator}: ${value} }`),
      fc
        .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 5 }))
        .map(([from, to]) => `count: { between: [${from}, ${to}] }`),
      fc
        .tuple(fc.constantFrom(...amounts), fc.constantFrom(...amounts))
        .map(([from, to]) => `amount: { between: [${jsonString(from)}, ${jsonString(to)}] }`),
      fc
        .tuple(fc.constantFrom('lt', 'gte', 'eq'), fc.constantFrom(...amounts))
        .map(([operator, value]) => `amount: { ${operator}: ${jsonString(value)} }`),
      fc
        .tuple(fc.constantFrom('eq', 'ne'), fc.constantFrom(...seals))
        .map(([operator, value]) => `seal: { ${operator}: ${jsonString(value)} }`),
      fc.constantFrom(...seals).map((value) => `seal: { in: [${jsonString(value)}, "AQ=="] }`),
      fc.constantFrom(...bigs).map((value) => `big: { gt: ${jsonString(value)} }`),
      fc
        .tuple(fc.constantFrom('lte', 'ne', 'eq', 'gt'), fc.constantFrom(...times))
        .map(([operator, value]) => `at: { ${operator}: ${jsonString(value)} }`),
      fc.constantFrom(...days).map((value) => `day: { in: [${jsonString(value)}] }`),
      fc.constantFrom('status: { eq: Closed }', 'flag: { eq: true }'),
    ],
    one: { owner: 'Owner', lies: 'Place', under: 'Thing' },
    many: { siblings: 'Thing', namesakes: 'Thing', over: 'Thing' },
    orders: [
      ...['label: ASC', 'label: DESC', 'label: DESC_NULLS_LAST', 'at: ASC_NULLS_FIRST', 'count: ASC', 'amount: DESC'],
      ...['big: ASC', 'day: DESC', 'status: ASC', 'flag: DESC', 'thingId: DESC', 'token: ASC', 'underId: DESC'],
      ...['seal: ASC', 'seal: DESC_NULLS_LAST'],
    ],
  },
  Owner: {
    conditions: [
      fc.constantFrom(...owners).map((value) => `ownerId: { ne: ${jsonString(value)} }`),
      fc.constantFrom(...owners).map((value) => `name: { gte: ${jsonString(value)} }`),
      fc.integer({ min: 0, max: 2 }).map((value) => `rank: { lte: ${value} }`),
    ],
    one: {},
    many: { things: 'Thing' },
    orders: ['name: DESC', 'rank: ASC', 'ownerId: DESC'],
  },
  Place: {
    conditions: [
      fc.constantFrom(...days).map((value) => `day: { gt: ${jsonString(value)} }`),
      fc.integer({ min: 0, max: 3 }).map((value) => `lane: { in: [${value}, 1] }`),
    ],
    one: {},
    many: { things: 'Thing' },
    orders: ['day: DESC', 'lane: DESC'],
  },
};

/** A condition over a type's columns or, up to `depth` relations away, over related rows, in both directions. */
function condition(type: TypeName, depth: number): Text {
  const own = fc.oneof(...types[type].conditions);
  return depth === 0 ? own : fc.oneof(own, related(type, depth));
}

export function related(type: TypeName, depth: number): Text {
  const { one, many } = types[type];
  return fc.oneof(
    ...Object.entries(one).map(([name, target]) => where(target, depth - 1).map((text) => `${name}: ${text}`)),
    ...Object.entries(many).map(([name, target]) =>
      fc
        .tuple(fc.constantFrom('some', 'every', 'none', 'both'), where(target, depth - 1))
        .map(([quantifier, text]) =>
          quantifier === 'both' ? `${name}: { some: {} every: ${text} }` : `${name}: { ${quantifier}: ${text} }`,
        ),
    ),
  );
}

const madeWheres = new Map<string, Text>();

export function where(type: TypeName, depth: number): Text {
  const known = madeWheres.get(`${type}${depth}`);
  if (known) return known;
  const made = fc.array(condition(type, depth), { maxLength: 2 }).chain((all) => {
    const parts = all.map((part) => `{ ${part} }`).join(' ');
    const [first = '', ...others] = all;
    return fc.constantFrom(
      `{ and: [${parts}] }`,
      `{ or: [${parts}] }`,
      `{ not: { and: [${parts}] } }`,
      `{ not: { or: [${parts}] } }`,
      `{ ${first} }`,
      `{ ${first} not: { ${others.join(' ')} } }`,
    );
  });
  madeWheres.set(`${type}${depth}`, made);
  return made;
}
