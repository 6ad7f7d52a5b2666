import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { effort } from '../support/effort.ts';
import { seed } from '../support/seed.ts';
import { type AdminAnswer, type AdminUnderTest, startAdmin, tokens } from './admin-under-test.ts';
import { fillOperated, operated } from './operated-application.ts';

// Values that no operator means: each argument of the admin API gets those of its type, and must refuse them or answer.

const schema = buildSchema(readFileSync(new URL('../../docs/admin-schema.graphql', import.meta.url), 'utf8'));

let admin: AdminUnderTest;
const errorsLogged: string[] = [];
const logger = pino({ level: 'error' }, { write: (line: string) => void errorsLogged.push(line.slice(0, 1000)) });
beforeAll(async () => {
  admin = await startAdmin(
    { ...operated, gateway: { admin: { tokens: [{ name: 'ada', token: tokens.all, rights: 'all' }] } } },
    fillOperated,
    logger,
  );
});
afterAll(() => admin.close());

const cursorOf = (place: string) => Buffer.from(place).toString('base64url');
const cursors = [
  ...[
    '',
    'null',
    '0',
    '-1',
    '1e300',
    '1.5',
    '"0n"',
    '"-1n"',
    '"9223372036854775807n"',
    '"9999999999999999999n"',
    '"x"',
    '"\\u0000"',
  ],
  ...[
    '{}',
    '[]',
    '{"of":"balance@1","after":"9999999999999999999n"}',
    '{"of":"\\u0000","after":"0n"}',
    '{"of":"x","after":"0n"}',
  ],
  ...[
    '{"key":null}',
    '{"key":"\\u0000"}',
    '{"key":["\\ud800"]}',
    '{"key":{}}',
    '{"key":["x",1]}',
    '{"key":["9999999999999999999n","["]}',
  ],
  ...['{"key":["1n","["]}', '{"key":[null,null]}', '{"key":["1n","[\\"\\\\u0000\\"]"]}', '{"key":1e300}'],
  ...[
    '{"versions":{"default":"9999999999999999999n"},"reactors":null,"away":[]}',
    '{"versions":{},"reactors":"-5n","away":["\\u0000"]}',
  ],
].map(cursorOf);
const texts = [
  ...[
    '',
    '\0',
    'a\0b',
    '\ud800',
    '__proto__',
    "'%\\",
    '\u00e4'.repeat(100_000),
    '9223372036854775808',
    'x@1',
    '@',
    'balance',
  ],
  ...[
    'balance@0',
    'balance@99999999999',
    'balance@9223372036854775808',
    'balance@1e3',
    'balance@1@1',
    'balance@\0',
    '*.\0',
    'x.y.z',
  ],
  ...['strict@1:9999999999999999999', 'mails:9999999999999999999', 'strict@1:-1', 'strict@1:x'],
];
const odd: Readonly<Record<string, readonly unknown[]>> = {
  String: [...texts, 1, true, []],
  ID: [...texts, 0, -1, 1.5, 2 ** 53, true],
  Int: [0, -1, 1, 1001, 2_147_483_647, -2_147_483_648, 2_147_483_648, 1.5, 1e300, 'x', true],
  Float: [0, -1, 100.000001, 1e308, -1e308, 5e-324, 'NaN', true],
  Boolean: ['x', 1, 0],
  BigInt: [
    0,
    -1,
    1.5,
    '-1',
    '1',
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775808',
    `1${'0'.repeat(400)}`,
    '',
    'x',
    '1\0',
  ],
  DateTime: [
    ...[
      '',
      'x',
      0,
      '2026-01-31',
      '2026-02-30T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '0001-01-01T00:00:00Z',
      '0001-01-01T00:00:00+15:00',
    ],
    ...[
      '9999-12-31T23:59:59.999999Z',
      '9999-12-31T23:59:59-15:00',
      '+275760-09-13T00:00:00Z',
      '-000001-01-01T00:00:00Z',
    ],
    ...[
      '2026-01-31T24:00:00Z',
      '2026-01-31T23:59:60Z',
      '2026-01-31T00:00:00.1234567890123Z',
      '2026-01-31T00:00:00+99:99',
      '2026-01-31T00:00:00Z\0',
    ],
  ],
  JSON: [
    ...[
      true,
      0,
      1e300,
      2 ** 53,
      1.5,
      '',
      '\0',
      '\ud800',
      [],
      [[]],
      {},
      ['\0'],
      ['\ud800'],
      [null],
      ['a', 'b'],
      { key: '\0' },
    ],
    ...[
      'x'.repeat(200_000),
      Array.from({ length: 2000 }, () => 1),
      JSON.parse('['.repeat(500) + ']'.repeat(500)),
      JSON.parse('{"__proto__":1}'),
    ],
  ],
};

/** Something that an argument of this name usually gets, so that what is odd is reached. */
function usual(name: string, type: GraphQLInputType, owner = ''): unknown {
  if (isNonNullType(type)) return usual(name, type.ofType, owner);
  if (isListType(type)) return [usual(name, type.ofType, owner)];
  const named: Readonly<Record<string, unknown>> = {
    ...{
      id: 'balance@1',
      version: 'balance@1',
      older: 'balance@1',
      newer: 'balance@2',
      projection: 'balance',
      reactor: 'mails',
      name: 'mails',
    },
    ...{ digest: 'x', reason: 'a test', position: '1', snapshot: '1', oneOf: 10, key: 'a', percent: 10 },
  };
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const needed = type.isOneOf ? fields.slice(0, 1) : fields.filter(isRequiredInputField);
    return Object.fromEntries(needed.map((field) => [field.name, usual(field.name, field.type, type.name)]));
  }
  if (isEnumType(type)) return type.getValues()[0]?.name;
  if (owner === 'ReactorVersionInput' && name === 'version') return 1;
  return named[name] ?? { Int: 1, Float: 1, BigInt: '1', Boolean: false }[type.name] ?? 'x';
}

/** Every value of an argument with one odd part. */
function* oddValues(name: string, type: GraphQLInputType, owner = ''): Generator<unknown> {
  if (isNonNullType(type)) return yield* oddValues(name, type.ofType, owner);
  if (isListType(type)) {
    yield* [[], [null]];
    for (const value of oddValues(name, type.ofType, owner)) yield [value];
    return;
  }
  if (isEnumType(type)) return yield* ['', 'x', 1];
  if (name === 'after') yield* cursors;
  if (!isInputObjectType(type)) return yield* odd[type.name] ?? [];
  for (const field of Object.values(type.getFields()))
    for (const value of oddValues(field.name, field.type, type.name))
      yield { ...(type.isOneOf ? {} : (usual(name, type, owner) as object)), [field.name]: value };
}

interface Place {
  /** The selection around `{}`. */
  readonly around: string;
  readonly of: GraphQLNamedType;
}

/** A way to each object type from a root, with usual arguments. */
function placesFrom(root: GraphQLNamedType): Place[] {
  const places: Place[] = [{ around: '{}', of: root }];
  const seen = new Set([root]);
  for (const { around, of } of places) {
    if (!isObjectType(of)) continue;
    for (const field of Object.values(of.getFields())) {
      const type = getNamedType(field.type);
      if (!isObjectType(type) || seen.has(type)) continue;
      seen.add(type);
      places.push({ around: around.replace('{}', `{ ${field.name}${literals(field)} {} }`), of: type });
    }
  }
  return places;
}

function literals(field: GraphQLField<unknown, unknown>, but?: GraphQLArgument): string {
  const given = field.args.filter((one) => one !== but && isRequiredArgument(one));
  const texts = given.map((one) => `${one.name}: ${literal(usual(one.name, one.type))}`);
  const all = [...texts, ...(but ? [`${but.name}: $odd`] : [])];
  return all.length === 0 ? '' : `(${all.join(', ')})`;
}

const literal = (value: unknown): string =>
  typeof value === 'object' && value !== null
    ? Array.isArray(value)
      ? `[${value.map(literal).join(', ')}]`
      : `{ ${Object.entries(value)
          .map(([name, one]) => `${name}: ${literal(one)}`)
          .join(', ')} }`
    : JSON.stringify(value);

const shown = (value: unknown) => JSON.stringify(value).slice(0, 80);

interface Trial {
  readonly name: string;
  readonly query: string;
  readonly values: readonly unknown[];
}

function trialsOf(kind: 'query' | 'mutation' | 'subscription', root: GraphQLNamedType): Trial[] {
  return placesFrom(root).flatMap(({ around, of }) =>
    Object.values(isObjectType(of) ? of.getFields() : {}).flatMap((field) =>
      field.args.map((one) => {
        const below = isObjectType(getNamedType(field.type)) ? ' { __typename }' : '';
        const selection = around.replace('{}', `{ ${field.name}${literals(field, one)}${below} }`);
        const query = `${kind} ($odd: ${one.type}) ${selection}`;
        return { name: `${of.name}.${field.name}(${one.name})`, query, values: [...oddValues(one.name, one.type)] };
      }),
    ),
  );
}

test('a reason of any characters and length is recorded or refused', async () => {
  const action = { pause: { version: 'balance@2' } };
  for (const reason of ['', '\0', 'a\0b', '\ud800', 'half \udc00', '\u00e4'.repeat(100_000), 'x'.repeat(200_000)]) {
    const { preview } = await admin.data('query ($a: ActionInput!) { preview(action: $a) { digest } }', { a: action });
    const run =
      'mutation ($a: ActionInput!, $d: String!, $r: String!) { run(action: $a, digest: $d, reason: $r) { summary } }';
    const { status, errors } = await admin.post(run, { a: action, d: preview.digest, r: reason });
    expect([reason.slice(0, 5), status, errors?.[0]?.extensions.code]).toEqual([
      reason.slice(0, 5),
      200,
      errors && 'BAD_USER_INPUT',
    ]);
    await admin.post(run, {
      a: { resume: action.pause },
      d: (
        await admin.data('query ($a: ActionInput!) { preview(action: $a) { digest } }', { a: { resume: action.pause } })
      ).preview.digest,
      r: 'x',
    });
  }
});

test('the audit log as CSV refuses odd parameters', async () => {
  const failed: string[] = [];
  const values = [...texts, ...(odd.DateTime ?? [])].map(String);
  for (const name of ['projection', 'version', 'reactor', 'actor', 'since', 'until', 'x'])
    for (const value of values.filter((one) => one.length < 1000)) {
      const { status } = await fetch(
        `${admin.refold.url}/admin/audit.csv?${name}=${encodeURIComponent(value.toWellFormed())}`,
        {
          headers: { authorization: `Bearer ${tokens.all}` },
        },
      );
      if (status >= 500) failed.push(`${name} ${shown(value)}: ${status}`);
    }
  expect(failed).toEqual([]);
});

/** The status and the errors of the first message, or of the refusal. The subscriber leaves then. */
async function firstMessage(query: string, variables: object): Promise<Pick<AdminAnswer, 'status' | 'errors'>> {
  const response = await admin.subscribe(query, variables);
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (/^data: \{.*\n\n/ms.test(text)) break;
  }
  const [, data = text] = /^data: (\{.*)$/m.exec(text) ?? [];
  return { status: response.status, errors: JSON.parse(data).errors };
}

test('no argument of a query, an action or a subscription answers with an internal error, whatever it gets', async () => {
  const failed: string[] = [];
  let tried = 0;
  const step = effort(1, 6);
  const trials = [
    ...trialsOf('query', schema.getQueryType() as GraphQLNamedType),
    ...trialsOf('mutation', schema.getMutationType() as GraphQLNamedType),
    ...trialsOf('subscription', schema.getSubscriptionType() as GraphQLNamedType),
  ];
  for (const { name, query, values } of trials)
    for (const [index, value] of values.entries()) {
      if ((index + seed) % step !== 0) continue;
      tried++;
      const { status, errors = [] } = await (query.startsWith('subscription') ? firstMessage : admin.post)(query, {
        odd: value,
      });
      const wrong = errors.find(
        ({ extensions }) => extensions.code === 'INTERNAL_SERVER_ERROR' || extensions.code === undefined,
      );
      if (status >= 500 || wrong) failed.push(`${name} ${shown(value)}: ${status} ${wrong?.message ?? ''}`);
    }
  expect(failed).toEqual([]);
  expect(errorsLogged).toEqual([]);
  expect(tried).toBeGreaterThan(3000 / step);
});
