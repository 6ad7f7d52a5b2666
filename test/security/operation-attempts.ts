import type { Operation, Transport } from './send.ts';

/** An operation that must not succeed, and its outcome. */
export interface Attempt extends Operation {
  readonly name: string;
  /** The one code of its errors; null: it succeeds, with nothing that is not the viewer's. */
  readonly code: string | null;
  /** Of a POST. @default 200 */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text in the response. */
  readonly tells?: string;
  /** Transports for which the attempt has no meaning. */
  readonly notBy?: readonly Transport[];
}

/** Refused by a field, and before any field. */
const bad = { code: 'BAD_USER_INPUT' } as const;
/** No row can hold the value, so no row is found. */
const nothing = { code: null } as const;
const misfit = { code: 'BAD_USER_INPUT', status: 400 } as const;
const unresolved = { code: 'OPERATION_RESOLUTION_FAILURE', status: 400 } as const;
const invalid = { code: 'GRAPHQL_VALIDATION_FAILED', status: 400 } as const;
const complex = { code: 'QUERY_TOO_COMPLEX', status: 400 } as const;

const list = 'query ($where: LetterFilter) { letters(where: $where) { nodes { letterId subject } totalCount } }';
const byId = 'query ($id: ID!) { letter(letterId: $id) { letterId subject } }';
const send =
  'mutation ($input: SendLetterInput!, $key: String) { sendLetter(input: $input, idempotencyKey: $key) { position } }';
const letter = (changed: object) => ({ letterId: 'attempt', tenantId: 'north', subject: 'x', ...changed });
const filtered = (where: object) => ({ query: list, variables: { where } });
const sent = (changed: object) => ({ query: send, variables: { input: letter(changed) } });
const nested = (depth: number, inner: unknown, wrap: (part: unknown) => unknown) => {
  let value = inner;
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
};
const times = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => part(index));
// Too long for a URL.
const tooLong: readonly Transport[] = ['a GET'];
const cursor = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');

const injections = [
  "' or '1'='1",
  "'; drop table refold.events; --",
  "x') union select id, payload from refold.events --",
  '"; select pg_sleep(10); --',
  '$1::text',
  '%_\\',
];

const injection: readonly Attempt[] = injections.flatMap((text, index): Attempt[] => [
  { name: `SQL in a key, ${index}`, query: byId, variables: { id: text }, code: null },
  {
    name: `SQL in every text operator, ${index}`,
    ...filtered({ or: [{ subject: { eq: text } }, { tenantId: { startsWith: text } }, { senderId: { in: [text] } }] }),
    code: null,
    tells: '"totalCount":0',
  },
]);

const valueAttempts: readonly Attempt[] = [
  { name: 'SQL in a decimal', ...filtered({ postage: { gt: "0' or 1=1 --" } }), ...misfit },
  { name: 'SQL in a time', ...filtered({ sentAt: { gt: "now()'; --" } }), ...misfit },
  { name: 'SQL in a day', ...filtered({ day: { eq: 'infinity' } }), ...misfit },
  { name: 'SQL in a UUID', query: '{ letterByTrackingId(trackingId: "\' or 1=1") { letterId } }', ...misfit },
  { name: 'SQL in a big integer', ...filtered({ serial: { eq: '1 or 1=1' } }), ...misfit },
  { name: 'SQL in an enum', ...filtered({ status: { eq: "Sent'--" } }), ...misfit },
  {
    name: 'SQL in the name of a column to sort by',
    query: '{ letters(orderBy: [{ "subject; drop": ASC }]) { totalCount } }',
    code: 'GRAPHQL_PARSE_FAILED',
    status: 400,
  },
  { name: 'NUL in a key', query: byId, variables: { id: 'a\u0000b' }, ...bad },
  { name: 'NUL in eq', ...filtered({ subject: { eq: 'a\u0000b' } }), ...bad },
  { name: 'NUL in a prefix', ...filtered({ subject: { startsWith: '\u0000' } }), ...bad },
  { name: 'NUL in a list', ...filtered({ subject: { in: ['a', '\u0000'] } }), ...bad },
  { name: 'NUL in an input', ...sent({ subject: 'a\u0000b' }), ...bad },
  { name: 'NUL in the id of a stream', ...sent({ letterId: 'a\u0000b' }), ...bad },
  { name: 'NUL deep in free JSON', ...sent({ extra: { a: [{ b: '\u0000' }] } }), ...bad },
  { name: 'NUL in a member name of free JSON', ...sent({ extra: { 'a\u0000': 1 } }), ...bad },
  { name: 'NUL in an idempotency key', query: send, variables: { input: letter({}), key: '\u0000' }, ...bad },
  { name: 'half a surrogate pair in a key', query: byId, variables: { id: '\ud800' }, code: null },
  { name: 'half a surrogate pair in a prefix', ...filtered({ subject: { startsWith: '\udc00x' } }), code: null },
  { name: 'half a surrogate pair in an input', ...sent({ subject: '\ud800' }), ...bad },
  { name: 'half a surrogate pair in the id of a stream', ...sent({ letterId: '\udfff' }), ...bad },
  {
    name: 'half a surrogate pair in an idempotency key',
    query: send,
    variables: { input: letter({}), key: '\ud800' },
    ...bad,
  },
  { name: 'an integer beyond 32 bits', ...filtered({ weight: { gt: 2 ** 31 } }), ...misfit },
  {
    name: 'an integer literal beyond 32 bits',
    query: '{ letters(where: { weight: { gt: 99999999999 } }) { totalCount } }',
    ...invalid,
  },
  { name: 'a big integer beyond 64 bits', ...filtered({ serial: { gt: '9223372036854775808' } }), ...misfit },
  { name: 'a big integer of a thousand digits', ...filtered({ serial: { gt: '9'.repeat(1000) } }), ...misfit },
  { name: 'a JSON number beyond all bounds', query: list, variables: { where: { postage: { gt: 1e308 } } }, ...misfit },
  { name: 'a decimal of two thousand digits', ...filtered({ postage: { gt: '9'.repeat(2001) } }), ...misfit },
  { name: 'a decimal of a thousand digits', ...filtered({ postage: { lt: '9'.repeat(1000) } }), ...bad },
  { name: 'no number', ...filtered({ postage: { gt: 'NaN' } }), ...misfit },
  { name: 'infinity', ...filtered({ postage: { lt: 'Infinity' } }), ...misfit },
  { name: 'a decimal with an exponent', ...filtered({ postage: { gt: '1e100000' } }), ...misfit },
  { name: 'a day that is none', ...filtered({ day: { eq: '2026-02-30' } }), ...misfit },
  { name: 'a day before all others', ...filtered({ day: { gt: '0000-01-01' } }), ...misfit },
  { name: 'a day after all others', ...filtered({ day: { lt: '99999-01-01' } }), ...misfit },
  { name: 'a time after all others', ...filtered({ sentAt: { lt: '9999-12-31T23:59:59-14:00' } }), ...misfit },
  { name: 'a time at hour 25', ...filtered({ sentAt: { lt: '2026-01-31T25:00:00Z' } }), ...misfit },
  {
    name: 'a float literal beyond all bounds',
    query:
      'mutation { sendLetter(input: { letterId: "a", tenantId: "north", subject: "x", ratio: 1e400 }) { position } }',
    ...bad,
  },
  { name: 'an integer beyond what is exact', ...sent({ weight: 2 ** 53 }), ...misfit },
  { name: 'a subject beyond its length', ...sent({ subject: 'x'.repeat(10_001) }), ...bad },
  { name: 'an indexed text that no index entry holds', ...filtered({ subject: { eq: 'x'.repeat(5000) } }), ...nothing },
  {
    name: 'a prefix that no index entry holds',
    ...filtered({ subject: { startsWith: 'x'.repeat(100_000) } }),
    ...nothing,
    notBy: tooLong,
  },
  {
    name: 'a key of a hundred kilobytes',
    query: byId,
    variables: { id: 'k'.repeat(100_000) },
    ...nothing,
    notBy: tooLong,
  },
  { name: 'a stream id of a hundred kilobytes', ...sent({ letterId: 'k'.repeat(100_000) }), ...bad },
  {
    name: 'an idempotency key of a hundred kilobytes',
    query: send,
    variables: { input: letter({}), key: 'k'.repeat(100_000) },
    ...bad,
  },
  { name: 'null inside of a filter', ...filtered({ tenantId: { eq: null } }), ...bad },
  { name: 'null as a filter', ...filtered({ not: null } as object), ...bad },
  { name: 'an object for a text', ...filtered({ subject: { eq: { $ne: null } } }), ...misfit },
  { name: 'a list for a key', query: byId, variables: { id: ['north-1'] }, ...misfit },
  {
    name: 'a negative version',
    query:
      'mutation { sendLetter(input: { letterId: "a", tenantId: "north", subject: "x" }, expectedVersion: -1) { position } }',
    ...bad,
  },
];

const shapeAttempts: readonly Attempt[] = [
  {
    name: 'a deep query',
    query: `{ letters { nodes { ${'sender { sent { nodes { '.repeat(10)} letterId ${'} } } '.repeat(10)} } } }`,
    ...complex,
  },
  {
    name: 'a deep query in fragments',
    query: `{ letters { nodes { ...F0 } } } ${times(12, (index) => `fragment F${index} on Letter { sender { sent { nodes { ...F${index + 1} } } } }`).join(' ')} fragment F12 on Letter { letterId }`,
    ...complex,
  },
  {
    name: 'a wide query',
    query: `{ ${times(29, (index) => `a${index}: letters(first: 1000) { nodes { sender { sent(first: 1000) { nodes { letterId } } } } }`).join(' ')} }`,
    ...complex,
  },
  {
    name: 'an alias bomb',
    query: `{ ${times(1000, (index) => `a${index}: letter(letterId: "x") { letterId }`).join(' ')} }`,
    ...complex,
    notBy: tooLong,
  },
  {
    name: 'an alias bomb in a mutation',
    query: `mutation { ${times(100, (index) => `a${index}: sendLetter(input: { letterId: "${index}", tenantId: "north", subject: "x" }) { position }`).join(' ')} }`,
    ...complex,
  },
  {
    name: 'aliases in a row',
    query: `{ letter(letterId: "north-1") { ${times(40, (index) => `a${index}: subject`).join(' ')} } }`,
    ...complex,
  },
  {
    name: 'the same field a thousand times',
    query: `{ letter(letterId: "x") { ${'subject '.repeat(3000)} } }`,
    ...complex,
    notBy: tooLong,
  },
  {
    name: 'a directive overload',
    query: `{ letter(letterId: "x") { ${'subject @include(if: true) '.repeat(60)} } }`,
    ...complex,
  },
  { name: 'unknown directives', query: `{ letter(letterId: "x") { subject ${'@a '.repeat(40)} } }`, ...invalid },
  {
    name: 'a circle of fragments',
    query: '{ letters { nodes { ...A } } } fragment A on Letter { ...B } fragment B on Letter { ...A }',
    ...invalid,
  },
  { name: 'a fragment of itself', query: '{ ...A } fragment A on Query { ...A }', ...invalid },
  {
    name: 'fragments that double',
    query: `{ ...F0 } ${times(120, (index) => `fragment F${index} on Query { ...F${index + 1} ...F${index + 1} }`).join(' ')} fragment F120 on Query { letter(letterId: "x") { letterId } }`,
    ...complex,
  },
  { name: 'a giant page', query: '{ letters(first: 1001) { nodes { letterId } } }', ...bad },
  { name: 'a giant page from the end', query: '{ letters(last: 2147483647) { nodes { letterId } } }', ...complex },
  { name: 'a page of less than nothing', query: '{ letters(first: -1) { nodes { letterId } } }', ...bad },
  {
    name: 'pages that multiply',
    query:
      '{ letters(first: 1000) { nodes { sender { sent(first: 1000) { nodes { sender { sent(first: 1000) { totalCount } } } } } } } }',
    ...complex,
  },
  {
    name: 'pages that multiply by variables',
    query: 'query ($n: Int) { letters(first: $n) { nodes { sender { sent(first: $n) { nodes { letterId } } } } } }',
    variables: { n: 1000 },
    ...complex,
  },
  {
    name: 'a thousand and one ids',
    query: 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }',
    variables: { ids: new Array(1001).fill('x') },
    ...bad,
  },
  {
    name: 'a filter of a thousand conditions',
    ...filtered({ or: new Array(1000).fill({ weight: { eq: 1 } }) }),
    ...bad,
    notBy: tooLong,
  },
  {
    name: 'a filter of ten thousand values',
    ...filtered({ weight: { in: Array.from({ length: 10_000 }, (_, index) => index) } }),
    code: null,
    notBy: tooLong,
  },
  {
    name: 'a filter nested fifty levels deep',
    ...filtered(nested(50, { weight: { eq: 1 } }, (part) => ({ not: part })) as object),
    ...bad,
  },
  {
    name: 'a filter nested ten thousand levels deep',
    query: list,
    variables: `{"where":${'{"not":'.repeat(10_000)}{}${'}'.repeat(10_000)}}`,
    ...misfit,
    notBy: tooLong,
  },
  {
    name: 'a filter that follows relations in circles',
    ...filtered(nested(4, {}, (part) => ({ sender: { sent: { some: part } } })) as object),
    ...bad,
  },
  {
    name: 'JSON nested a hundred thousand levels deep',
    query: send,
    variables: `{"input":{"letterId":"a","tenantId":"north","subject":"x","extra":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ...misfit,
    notBy: tooLong,
  },
  { name: 'JSON nested a hundred levels deep', ...sent({ extra: nested(100, 1, (part) => [part]) }), ...misfit },
  {
    name: 'JSON nested hundreds of levels deep in a literal',
    query: `mutation { sendLetter(input: { letterId: "a", tenantId: "north", subject: "x", extra: ${'['.repeat(500)}${']'.repeat(500)} }) { position } }`,
    ...bad,
  },
  {
    name: 'fields that could be in conflict',
    query: `{ ${'letters { nodes { sender { letters } } } '.repeat(110)} }`,
    code: null,
  },
  {
    name: 'a list nested in literals',
    query: `{ letters(where: { weight: { in: ${'['.repeat(800)}1${']'.repeat(800)} } }) { totalCount } }`,
    ...invalid,
  },
  { name: 'a document of brackets', query: '{a'.repeat(900), code: 'GRAPHQL_PARSE_FAILED', status: 400 },
  { name: 'a document of more brackets', query: '{a'.repeat(30_000), ...complex, notBy: tooLong },
  { name: 'a document of nothing', query: ' ', code: 'GRAPHQL_PARSE_FAILED', status: 400 },
  { name: 'a document of NUL', query: '{ \u0000 }', code: 'GRAPHQL_PARSE_FAILED', status: 400 },
  { name: 'a document of a schema', query: 'type Query { a: Int }', ...unresolved },
  {
    name: 'variables of five thousand names',
    query: '{ letter(letterId: "north-1") { letterId } }',
    variables: Object.fromEntries(times(5000, (index) => `v${index}`).map((name) => [name, 1])),
    code: null,
    tells: 'north-1',
    notBy: tooLong,
  },
  {
    name: 'a thousand variables',
    query: `query (${times(600, (index) => `$v${index}: Int`).join(' ')}) { letters(first: $v0) { totalCount } }`,
    ...complex,
  },
  { name: 'deferred parts', query: '{ ... @defer { letters { totalCount } } }', ...invalid },
  {
    name: 'an operation that is not there',
    query: 'query A { letters { totalCount } }',
    operationName: '__proto__',
    ...unresolved,
  },
  { name: 'two operations and no name', query: 'query A { __typename } query B { __typename }', ...unresolved },
];

const prototypes: readonly Attempt[] = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString'].flatMap(
  (word): Attempt[] => [
    {
      name: `${word} as an alias`,
      query: `{ ${word}: letter(letterId: "north-1") { ${word}: subject } }`,
      code: null,
      tells: `"${word}":"own 1"`,
    },
    { name: `${word} as a field`, query: `{ letter(letterId: "north-1") { ${word} } }`, ...invalid },
    {
      name: `${word} as a column of a filter`,
      query: list,
      variables: { where: JSON.parse(`{"${word}":{"eq":"x"}}`) },
      ...misfit,
    },
    {
      name: `${word} as an operator`,
      query: list,
      variables: { where: { subject: JSON.parse(`{"${word}":"x"}`) } },
      ...misfit,
    },
    {
      name: `${word} as a column to sort by`,
      query: 'query ($o: [LetterOrder!]) { letters(orderBy: $o) { totalCount } }',
      variables: { o: [JSON.parse(`{"${word}":"ASC"}`)] },
      ...misfit,
    },
    {
      name: `${word} in an input`,
      query: send,
      variables: {
        input: JSON.parse(`{"letterId":"a","tenantId":"north","subject":"x","${word}":{"tenantId":"south"}}`),
      },
      ...misfit,
    },
    {
      name: `${word} as a variable`,
      query: 'query ($id: ID!) { letter(letterId: $id) { letterId } }',
      variables: JSON.parse(`{"${word}":{"id":"north-1"}}`),
      ...misfit,
    },
    {
      name: `${word} as the type of a global id`,
      query: 'query ($id: ID!) { node(id: $id) { id } }',
      variables: { id: cursor(1, word, 'x') },
      ...bad,
    },
    {
      name: `${word} as a pin`,
      query: '{ letters { totalCount } }',
      headers: { 'refold-pin': `${word}@1` },
      ...misfit,
    },
    { name: `${word} as a key`, query: byId, variables: { id: word }, code: null },
  ],
);

const secretsOfTheSchema: readonly Attempt[] = [
  { name: 'introspection', query: '{ __schema { types { name fields { name } } } }', ...invalid },
  { name: 'introspection of a type', query: '{ __type(name: "Letter") { fields { name } } }', ...invalid },
  {
    name: 'introspection in a fragment',
    query: '{ ...F } fragment F on Query { __schema { queryType { name } } }',
    ...invalid,
  },
  { name: 'introspection under another name', query: '{ letters: __schema { queryType { name } } }', ...invalid },
  { name: 'a guessed field', query: '{ letter(letterId: "x") { secre } }', ...invalid },
  { name: 'a guessed root field', query: '{ lettersAggregat { count } }', ...invalid },
  { name: 'a guessed argument', query: '{ letters(wher: {}) { totalCount } }', ...invalid },
  { name: 'a guessed type', query: 'query ($w: LetterFilte) { letters(where: $w) { totalCount } }', ...invalid },
  {
    name: 'a guessed column of a filter',
    query: '{ letters(where: { secre: { eq: "x" } }) { totalCount } }',
    ...invalid,
  },
  { name: 'a guessed column in a variable', ...filtered({ secre: { eq: 'x' } }), ...misfit },
  { name: 'a guessed operator in a variable', ...filtered({ subject: { startWith: 'x' } }), ...misfit },
  {
    name: 'a guessed value of an enum',
    query: '{ letters(where: { status: { eq: Snt } }) { totalCount } }',
    ...invalid,
  },
  { name: 'a guessed value of an enum in a variable', ...filtered({ status: { eq: 'Snt' } }), ...misfit },
  { name: 'a guessed member of an input', ...sent({ subjec: 'x' }), ...misfit },
  { name: 'a guessed mutation', query: 'mutation { sendLeter { position } }', ...invalid },
  {
    name: 'a guessed projection in a pin',
    query: '{ letters { totalCount } }',
    headers: { 'refold-pin': 'lette@1' },
    ...misfit,
  },
];

export const attempts: readonly Attempt[] = [
  ...injection,
  ...valueAttempts,
  ...shapeAttempts,
  ...prototypes,
  ...secretsOfTheSchema,
];
