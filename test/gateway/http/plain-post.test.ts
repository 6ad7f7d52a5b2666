import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { GraphQLError } from 'graphql';
import { beforeEach, describe, expect, test } from 'vitest';
import { extendSchema, RefoldError } from '../../../src/index.ts';
import { active } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcelV1, parcelV2 } from '../../schema/parcels.ts';
import { type GatewayUnderTest, startGateway } from '../gateway-under-test.ts';

/** What no declared projection does: returns the kind of request object, fails, and words its own refusals. */
const extension = extendSchema(({ builder }) => {
  builder.queryFields((t) => ({
    askedThrough: t.string({ resolve: (_, __, context) => String(Reflect.get(context, 'request')) }),
    fails: t.string({ nullable: true, resolve: failing(new Error('secret')) }),
    failsWhole: t.string({ resolve: failing(new Error('secret')) }),
    refuses: t.string({ nullable: true, resolve: failing(new RefoldError('FORBIDDEN', 'Not you.')) }),
    unspeakable: t.field({ type: 'JSON', nullable: true, resolve: () => ({ count: 1n }) }),
    garbles: t.string({
      nullable: true,
      resolve: failing(new GraphQLError('No.', { extensions: { code: 'NO', http: { headers: { 'x-no': 'a\nb' } } } })),
    }),
    brews: t.string({
      nullable: true,
      resolve: failing(
        new GraphQLError('I am a teapot.', {
          extensions: { code: 'TEAPOT', http: { status: 418, headers: { 'x-brew': 'tea' } } },
        }),
      ),
    }),
  }));
});

function failing(error: Error) {
  return (): string => {
    throw error;
  };
}

interface Sent {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunked?: boolean;
}

const json = { 'content-type': 'application/json' };
const operation = (query: string, more: object = {}): Sent => ({ body: JSON.stringify({ query, ...more }) });

async function answerTo({ endpoint }: GatewayUnderTest, path: string, { body, headers = json, chunked }: Sent) {
  const length = chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(Buffer.byteLength(body)) };
  const sending = request(new URL(path, endpoint), { method: 'POST', headers: { ...headers, ...length } });
  sending.end(body);
  const [response]: IncomingMessage[] = await once(sending, 'response');
  if (!response) throw new Error('no response');
  const { date: _, ...rest } = response.headers;
  return {
    status: response.statusCode,
    message: response.statusMessage,
    headers: rest,
    body: alike(await text(response)),
  };
}

/** Without the parts that differ between any two responses: ids, and seconds that pass. */
function alike(body: string): string {
  return body.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'an-id').replace(/in \d+ s\./, 'in a while.');
}

/** A query string makes yoga answer; yoga ignores it in a POST. */
const bothAnswers = async (gateway: GatewayUnderTest, sent: Sent) =>
  [await answerTo(gateway, '/graphql', sent), await answerTo(gateway, '/graphql?by=yoga', sent)] as const;

const documents = {
  [createHash('sha256').update('{ parcels { totalCount } }').digest('hex')]: '{ parcels { totalCount } }',
};
const persisted = (sha256Hash: string) => ({
  body: JSON.stringify({ extensions: { persistedQuery: { sha256Hash } } }),
});

describe('a plain POST of JSON is answered as yoga answers it', () => {
  let gateway: GatewayUnderTest;
  beforeEach(async () => {
    gateway = await startGateway({
      extension,
      served: [active(parcelV2), active(courierDayV1)],
      options: { maxBodySize: 3000, maxCost: 500, persistedOperations: { documents } },
      auth({ header }) {
        if (header('Authorization') === 'bad') throw new RefoldError('UNAUTHENTICATED', 'That does not count.');
        if (header('authorization') === 'worse') throw new Error('secret');
        return { id: 'v', tenant: null, roles: [], claims: {}, expiresAt: null };
      },
    });
    gateway.services.maintained = [parcelV1, parcelV2];
    await gateway.pack({ a: {}, ä: { weight: '3' } });
  });

  const wellFormed: Readonly<Record<string, Sent>> = {
    'a query': operation('{ parcels { nodes { parcelId weight } totalCount } }'),
    'a look-up': operation('query ($id: ID!) { parcel(parcelId: $id) { parcelId } }', { variables: { id: 'ä' } }),
    'one of two operations': operation('query A { a: __typename } query B { b: __typename }', { operationName: 'B' }),
    'an operation that is not named': operation('query A { a: __typename } query B { b: __typename }'),
    'another operation': operation('query A { a: __typename }', { operationName: 'C' }),
    nulls: operation('{ __typename }', { variables: null, operationName: null, extensions: null }),
    'a parse error': operation('{ parcels {'),
    'a validation error': operation('{ parcels { nodes { wieght } } }'),
    'no operation': operation('fragment A on Query { __typename }'),
    'a variable that is missing': operation('query ($id: ID!) { parcel(parcelId: $id) { weight } }'),
    'a variable of another type': operation('query ($n: Int) { parcels(first: $n) { totalCount } }', {
      variables: { n: 'x' },
    }),
    'what costs too much': operation('{ parcels(first: 501) { nodes { weight } } }'),
    'what is too deep': operation(`{ parcels ${'{ edges { node { relatedTo '.repeat(12)} ${'} }'.repeat(12)} }`),
    'an error beside data': operation('{ fails parcels { totalCount } }'),
    'an error without data': operation('{ failsWhole }'),
    'a refusal': operation('{ refuses }'),
    'a status of its own': operation('{ brews fails }'),
    'a value that is no JSON': operation('{ unspeakable }'),
    introspection: operation('{ __schema { queryType { name } } }'),
    'a directive for streams': operation('{ ... @defer { __typename } }'),
    'a rejected mutation': operation('mutation { packParcel(input: { parcelId: "" }) { position } }'),
    'an unknown mutation': operation('mutation { nothing }'),
    'a token that does not count': { ...operation('{ __typename }'), headers: { ...json, authorization: 'bad' } },
    'an authenticator that fails': { ...operation('{ __typename }'), headers: { ...json, authorization: 'worse' } },
    'a deprecated version': {
      ...operation('{ parcel(parcelId: "a") { weight } }'),
      headers: { ...json, 'refold-pin': 'parcel@1' },
    },
    'a pin of nothing': { ...operation('{ __typename }'), headers: { ...json, 'refold-pin': 'parcel@7' } },
    'a position that is none': {
      ...operation('{ parcels { totalCount } }'),
      headers: { ...json, 'refold-after': 'x' },
    },
    'a persisted operation': persisted(Object.keys(documents)[0] ?? ''),
    'a persisted operation that is not known': persisted('0'.repeat(64)),
    'a page of another site': { ...operation('{ __typename }'), headers: { ...json, origin: 'https://evil.example' } },
  };
  const malformed: Readonly<Record<string, Sent>> = {
    'no JSON': { body: '{"query":' },
    nothing: { body: '' },
    'nothing in chunks': { body: '', chunked: true },
    null: { body: 'null' },
    'a string': { body: '"{ __typename }"' },
    'a batch': { body: '[{"query":"{ __typename }"}]' },
    'an empty batch': { body: '[]' },
    'no document': { body: '{}' },
    'an empty document': operation(''),
    'a document that is no text': { body: '{"query":7}' },
    'a parameter too many': operation('{ __typename }', { queries: [] }),
    'a prototype': { body: '{"query":"{ __typename }","__proto__":{"query":"x"}}' },
    'a name that is no text': operation('{ __typename }', { operationName: 7 }),
    'variables that are none': operation('{ __typename }', { variables: [] }),
    'extensions that are none': operation('{ __typename }', { extensions: 'x' }),
    'a body that is too large': operation(`{ __typename } #${'x'.repeat(4000)}`),
    'a body that is too large in chunks': { ...operation(`{ __typename } #${'x'.repeat(4000)}`), chunked: true },
    'a body in chunks': { ...operation('{ __typename }'), chunked: true },
    'a form': { body: 'query={__typename}', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    text: { body: '{"query":"{ __typename }"}', headers: { 'content-type': 'text/plain' } },
    'no type': { body: '{"query":"{ __typename }"}', headers: {} },
    'a document alone': { body: '{ __typename }', headers: { 'content-type': 'application/graphql' } },
  };
  const accepts = ['application/json', 'application/graphql-response+json', 'text/html'];

  test.each(Object.entries({ ...wellFormed, ...malformed }))('%s', async (_, sent) => {
    for (const accept of [undefined, ...accepts]) {
      const headers = { ...(sent.headers ?? json), ...(accept ? { accept } : {}) };
      const [plain, yogas] = await bothAnswers(gateway, { ...sent, headers });
      expect(plain).toEqual(yogas);
    }
  });

  test('for everything that a client accepts and sends', async () => {
    const ranges = [
      '*/*',
      'application/*',
      'text/event-stream',
      'multipart/mixed',
      '*/json',
      ' ',
      'text/*',
      ...accepts,
    ];
    const parameters = ['', ';q=0.9', '; charset=utf-8', ';charset=latin1', ';q=0;charset=UTF-8'];
    const range = fc
      .tuple(fc.constantFrom(...ranges), fc.constantFrom(...parameters))
      .map(([type, rest]) => type + rest);
    const value = fc.oneof(
      fc.constantFrom('{ __typename }', '{ fails }', '{ wrong }', null, 7, '', {}, []),
      fc.jsonValue(),
    );
    const params = fc.record(
      {
        query: fc.oneof(fc.constant('{ __typename }'), value),
        variables: value,
        operationName: value,
        extensions: value,
      },
      { requiredKeys: ['query'] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(range, { maxLength: 4 }), fc.oneof(params, fc.jsonValue()), async (accepted, body) => {
        const headers = { ...json, ...(accepted.length > 0 ? { accept: accepted.join(',') } : {}) };
        const [plain, yogas] = await bothAnswers(gateway, { body: JSON.stringify(body), headers });
        expect(plain).toEqual(yogas);
      }),
    );
  });
});

test('a rate limit counts both ways together, and refuses both in the same way', async () => {
  const gateway = await startGateway({ options: { rateLimit: { operations: 2, seconds: 600 } } });
  for (const { status } of await bothAnswers(gateway, operation('{ __typename }'))) expect(status).toBe(200);
  for (const { status, headers, body } of await bothAnswers(gateway, operation('{ __typename }'))) {
    expect([status, Number(headers['retry-after']) > 0, body]).toEqual([
      429,
      true,
      expect.stringContaining('RATE_LIMITED'),
    ]);
  }
});

describe('yoga creates a Request', () => {
  const ask = operation('{ askedThrough }');
  const plain = '{"data":{"askedThrough":"[object Object]"}}';
  const yogas = '{"data":{"askedThrough":"[object Request]"}}';
  const withHeaders = (headers: Record<string, string>): Sent => ({ ...ask, headers: { ...json, ...headers } });

  test.each<[string, Sent]>([
    ['without more headers', ask],
    ['of utf-8', withHeaders({ 'content-type': 'application/json; charset=utf-8' })],
    ['as Apollo sends it', withHeaders({ accept: 'application/graphql-response+json,application/json;q=0.9' })],
    [
      'as urql sends it',
      withHeaders({
        accept:
          'application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed',
      }),
    ],
    ['of a page of the same site', withHeaders({ origin: 'http://127.0.0.1', 'sec-fetch-site': 'same-origin' })],
  ])('not for a plain POST %s', async (_, sent) => {
    expect((await answerTo(await startGateway({ extension }), '/graphql', sent)).body).toBe(plain);
  });

  test.each<[string, Sent]>([
    ['in chunks', { ...ask, chunked: true }],
    ['of another type', withHeaders({ 'content-type': 'application/graphql+json' })],
    ['that is said to be compressed', withHeaders({ 'content-encoding': 'identity' })],
    [
      'of a document that may stream',
      operation('query subscription { askedThrough }', { operationName: 'subscription' }),
    ],
  ])('for one %s', async (_, sent) => {
    expect((await answerTo(await startGateway({ extension }), '/graphql', sent)).body).toBe(yogas);
  });

  test('for one with a query string', async () => {
    const answers = await bothAnswers(await startGateway({ extension }), ask);
    expect(answers.map(({ body }) => body)).toEqual([plain, yogas]);
  });

  test('not for one of another site, whose CORS headers are the same', async () => {
    const cors = { origins: ['https://shop.example.com', 'https://other.example.com'], credentials: true };
    const gateway = await startGateway({ extension, options: { cors } });
    for (const origin of [...cors.origins, 'https://evil.example', 'null']) {
      const answers = await bothAnswers(gateway, withHeaders({ origin, 'sec-fetch-site': 'cross-site' }));
      expect(answers.map(({ body }) => body)).toEqual([plain, yogas]);
      const [own, others] = answers.map(({ headers }) =>
        Object.entries(headers).filter(([name]) => name.startsWith('access-control-') || name === 'vary'),
      );
      expect(own).toEqual(others);
      const readable = own?.find(([name]) => name === 'access-control-allow-origin')?.[1];
      expect(readable).toBe(cors.origins.includes(origin) ? origin : undefined);
    }
  });
});

test("a response whose headers can't be sent is logged, and ends its connection only", async () => {
  const gateway = await startGateway({ extension });
  await expect(answerTo(gateway, '/graphql', operation('{ garbles }'))).rejects.toThrow('socket hang up');
  expect(gateway.logged).toContainEqual(expect.objectContaining({ msg: 'an operation failed' }));
  expect((await answerTo(gateway, '/graphql', operation('{ __typename }'))).status).toBe(200);
});

test('a client that disconnects, before its body is complete or before its response, affects no other client', async () => {
  const gateway = await startGateway();
  const { services, pack, post } = gateway;
  const head = 'POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ';
  async function leave(rest: string) {
    const socket = connect(gateway.gateway.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(head + rest);
    return socket;
  }
  (await leave('100\r\n\r\n{"query"')).destroy();
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const { body } = operation('query @after(position: "2") { parcels { totalCount } }');
  const waiting = await leave(`${body.length}\r\n\r\n${body}`);
  await expect.poll(() => services.open).toBe(1);
  waiting.destroy();
  services.release(parcelV1);
  await expect.poll(() => services.open).toBe(0);
  expect((await post('{ parcels { totalCount } }')).data).toEqual({ parcels: { totalCount: 2 } });
});
