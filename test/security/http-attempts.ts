import { gzipSync } from 'node:zlib';
import { type Reply, sendBytes, sendHttp } from './send.ts';
import type { Target } from './target.ts';

/** A request that is not a client's operation, and its outcome. */
export interface HttpAttempt {
  readonly name: string;
  send(target: Target, authorization: string): Promise<Reply>;
  /** One of these, if the server or a proxy may choose. */
  readonly status: number | readonly number[];
  /** The codes of its errors; undefined if the response is not GraphQL. */
  readonly codes?: readonly string[];
}

const query = '{ letters { totalCount } }';
const mutation = 'mutation { sendLetter(input: { letterId: "csrf", tenantId: "north", subject: "x" }) { position } }';
const json = 'application/json';
const accept = 'application/graphql-response+json';

function posted(body: string | Buffer, headers: Record<string, string> = {}): HttpAttempt['send'] {
  return (target, authorization) =>
    sendHttp(target, { headers: { 'content-type': json, accept, authorization, ...headers }, body });
}

function got(parameters: Record<string, string>, headers: Record<string, string> = {}): HttpAttempt['send'] {
  const path = `/graphql?${new URLSearchParams(parameters)}`;
  return (target, authorization) =>
    sendHttp(target, { method: 'GET', path, headers: { accept, authorization, ...headers } });
}

/** The raw head of a request, line by line; then the body. */
function written(lines: readonly string[], body: string | Buffer = ''): HttpAttempt['send'] {
  return (target, authorization) =>
    sendBytes(
      target,
      Buffer.concat([
        Buffer.from([...lines, `Authorization: ${authorization}`, 'Connection: close', '', ''].join('\r\n'), 'latin1'),
        Buffer.from(body),
      ]),
    );
}

const head = ['POST /graphql HTTP/1.1', 'Host: localhost', `Content-Type: ${json}`, `Accept: ${accept}`];
const of = (body: string) => `Content-Length: ${Buffer.byteLength(body)}`;
const operation = JSON.stringify({ query });
const huge = JSON.stringify({ query, variables: { x: 'x'.repeat(300_000) } });
const boundary = 'parts';
const upload = [
  `--${boundary}`,
  'Content-Disposition: form-data; name="operations"',
  '',
  operation,
  `--${boundary}`,
  'Content-Disposition: form-data; name="map"',
  '',
  '{}',
  `--${boundary}--`,
  '',
].join('\r\n');

const bad = { status: 400, codes: ['BAD_REQUEST'] } as const;

const bodies: readonly HttpAttempt[] = [
  { name: 'broken JSON', send: posted('{"query":'), ...bad },
  { name: 'JSON with more behind it', send: posted(`${operation}}`), ...bad },
  { name: 'no body', send: posted(''), ...bad },
  { name: 'a body of null', send: posted('null'), ...bad },
  { name: 'a body that is a text', send: posted('"{ letters { totalCount } }"'), ...bad },
  { name: 'a body that is a number', send: posted('42'), ...bad },
  { name: 'a body of NUL', send: posted(Buffer.alloc(100)), ...bad },
  { name: 'JSON nested a hundred thousand levels deep', send: posted('['.repeat(100_000)), ...bad },
  { name: 'a query that is no text', send: posted('{"query":{"a":1}}'), ...bad },
  { name: 'variables that are a list', send: posted(`{"query":"${query}","variables":[1]}`), ...bad },
  { name: 'variables that are a text', send: posted(`{"query":"${query}","variables":"x"}`), ...bad },
  {
    name: 'an operation name that is an object',
    send: posted(`{"query":"${query}","operationName":{}}`),
    status: 400,
    codes: ['OPERATION_RESOLUTION_FAILURE'],
  },
  { name: 'extensions that are a list', send: posted(`{"query":"${query}","extensions":[]}`), ...bad },
  { name: 'a member that GraphQL has not', send: posted(`{"query":"${query}","admin":true}`), ...bad },
  { name: 'a prototype as a member', send: posted(`{"query":"${query}","__proto__":{"viewer":"system"}}`), ...bad },
  {
    name: 'a query twice, the last of which counts',
    send: posted(`{"query":"${query}","query":"{ a }"}`),
    status: 400,
    codes: ['GRAPHQL_VALIDATION_FAILED'],
  },
  { name: 'a batch', send: posted(`[${operation},${operation}]`), ...bad },
  { name: 'a batch of ten thousand', send: posted(`[${new Array(5000).fill(operation).join(',')}]`), ...bad },
  {
    name: 'invalid UTF-8 in a document',
    send: posted(Buffer.concat([Buffer.from('{"query":"{ '), Buffer.from([0xff, 0xfe]), Buffer.from(' }"}')])),
    status: 400,
    codes: ['GRAPHQL_PARSE_FAILED'],
  },
  {
    name: 'invalid UTF-8 in a value',
    send: posted(
      Buffer.concat([
        Buffer.from('{"query":"{ letter(letterId: \\"'),
        Buffer.from([0xc3, 0x28]),
        Buffer.from('\\") { letterId } }"}'),
      ]),
    ),
    status: 200,
    codes: [],
  },
  {
    name: 'UTF-16',
    send: posted(Buffer.from(operation, 'utf16le'), { 'content-type': 'application/json; charset=utf-16' }),
    ...bad,
  },
  { name: 'a huge body', send: posted(huge), status: 413, codes: ['REQUEST_TOO_LARGE'] },
  {
    name: 'a huge body in chunks',
    send: (target, authorization) =>
      sendHttp(target, { headers: { 'content-type': json, accept, authorization }, body: huge, chunked: true }),
    status: 413,
    codes: ['REQUEST_TOO_LARGE'],
  },
  {
    name: 'a body that announces to be huge',
    send: written([...head, 'Content-Length: 99999999999']),
    status: 413,
    codes: ['REQUEST_TOO_LARGE'],
  },
  {
    name: 'a huge body of another type',
    send: posted(huge, { 'content-type': 'text/plain', 'refold-csrf': '1' }),
    status: [400, 413, 415],
  },
  { name: 'a compressed body', send: posted(gzipSync(operation), { 'content-encoding': 'gzip' }), status: [400, 415] },
  {
    name: 'a body that grows a thousand times',
    send: posted(gzipSync(Buffer.alloc(50_000_000, ' ')), { 'content-encoding': 'gzip' }),
    status: [400, 415],
  },
  {
    name: 'a compressed body, encoded as who knows',
    send: posted(gzipSync(operation), { 'content-encoding': 'br, gzip, x' }),
    status: [400, 415],
  },
];

const contentTypes: readonly HttpAttempt[] = [
  {
    name: 'an upload in parts',
    send: posted(upload, { 'content-type': `multipart/form-data; boundary=${boundary}` }),
    status: [400, 403, 415],
  },
  {
    name: 'an upload in parts that says that it is none of another site',
    send: posted(upload, { 'content-type': `multipart/form-data; boundary=${boundary}`, 'refold-csrf': '1' }),
    status: 415,
  },
  {
    name: 'a form',
    send: posted(`query=${encodeURIComponent(query)}`, { 'content-type': 'application/x-www-form-urlencoded' }),
    status: [400, 403, 415],
  },
  {
    name: 'a form of another site',
    send: posted(`query=${encodeURIComponent(mutation)}`, {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
    }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'JSON as plain text',
    send: posted(JSON.stringify({ query: mutation }), { 'content-type': 'text/plain' }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'JSON as plain text, dressed up',
    send: posted(JSON.stringify({ query: mutation }), { 'content-type': 'text/plain; application/json' }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'JSON in no type',
    send: (target, authorization) =>
      sendHttp(target, { headers: { authorization, accept }, body: JSON.stringify({ query: mutation }) }),
    status: [400, 403, 415],
  },
  {
    name: 'a document as its type',
    send: posted('{ nothing }', { 'content-type': 'application/graphql' }),
    status: [400, 415],
  },
  {
    name: 'XML',
    send: posted('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', {
      'content-type': 'application/xml',
    }),
    status: [400, 415],
  },
  { name: 'an answer in a type that there is none of', send: posted(operation, { accept: 'image/png' }), status: 406 },
  {
    name: 'a type of a hundred parameters',
    send: posted(operation, { 'content-type': `application/json${'; a=b'.repeat(100)}` }),
    status: [200, 400, 415],
  },
];

const crossSite: readonly HttpAttempt[] = [
  { name: 'a mutation by GET', send: got({ query: mutation }), status: 405 },
  {
    name: 'a mutation by GET under the name of a query',
    send: got({
      query: `query A { letters { totalCount } } ${mutation.replace('mutation', 'mutation B')}`,
      operationName: 'B',
    }),
    status: 405,
  },
  {
    name: 'a GET from another site',
    send: got({ query }, { 'sec-fetch-site': 'cross-site' }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'a GET from a site beside this one',
    send: got({ query }, { 'sec-fetch-site': 'same-site' }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'a stream from another site',
    send: got(
      { query: 'subscription { letters { position } }' },
      { 'sec-fetch-site': 'cross-site', accept: 'text/event-stream' },
    ),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'a question of another site whether it may',
    send: (target) =>
      sendHttp(target, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      }),
    status: [204, 400, 403, 404, 405],
  },
  { name: 'GET with broken variables', send: got({ query, variables: '{' }), status: 400, codes: ['BAD_REQUEST'] },
  { name: 'GET with broken extensions', send: got({ query, extensions: '{' }), status: 400, codes: ['BAD_REQUEST'] },
  { name: 'GET with variables that are a list', send: got({ query, variables: '[]' }), status: 400 },
  { name: 'GET with nothing', send: got({}), status: [400, 404] },
];

const heads: readonly HttpAttempt[] = [
  {
    name: 'a method that there is none of',
    send: (target, authorization) =>
      sendHttp(target, { method: 'PUT', headers: { authorization, 'content-type': json }, body: operation }),
    status: 405,
  },
  {
    name: 'a method to remove',
    send: (target, authorization) => sendHttp(target, { method: 'DELETE', headers: { authorization } }),
    status: 405,
  },
  {
    name: 'a method that echoes',
    send: written(['TRACE /graphql HTTP/1.1', 'Host: localhost']),
    status: [400, 403, 404, 405],
  },
  {
    name: 'a tunnel',
    send: written(['CONNECT evil.example:443 HTTP/1.1', 'Host: evil.example:443']),
    status: [0, 400, 404, 405],
  },
  { name: 'a method that nobody knows', send: written(['STEAL /graphql HTTP/1.1', 'Host: localhost']), status: 400 },
  {
    name: 'a path that climbs',
    send: written(['GET /graphql/../../../etc/passwd HTTP/1.1', 'Host: localhost']),
    status: 404,
  },
  {
    name: 'a path that climbs in disguise',
    send: written(['GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1', 'Host: localhost']),
    status: 404,
  },
  {
    name: 'a path of another host',
    send: written(['GET http://evil.example/graphql HTTP/1.1', 'Host: evil.example']),
    status: [200, 400, 404],
  },
  { name: 'a path that is none', send: written(['GET //[ HTTP/1.1', 'Host: localhost']), status: [400, 404] },
  {
    name: 'a path that does not end',
    send: written([`GET /graphql?query=${'x'.repeat(60_000)} HTTP/1.1`, 'Host: localhost']),
    status: 431,
  },
  { name: 'sources of the program', send: written(['GET /src/index.ts HTTP/1.1', 'Host: localhost']), status: 404 },
  {
    name: 'a header without end',
    send: written([...head, of(operation), `graphql-client-name: ${'x'.repeat(60_000)}`], operation),
    status: 431,
  },
  {
    name: 'ten thousand headers',
    send: written([...head, of(operation), ...Array.from({ length: 3000 }, (_, index) => `x-${index}: 1`)], operation),
    status: 431,
  },
  {
    name: 'a header over two lines',
    send: written([...head, of(operation), 'graphql-client-name: a', ' refold-pin: letter@9'], operation),
    status: [200, 400],
  },
  {
    name: 'a header with a bare line feed',
    send: written([...head, of(operation), 'graphql-client-name: a\nrefold-pin: letter@9'], operation),
    status: 400,
  },
  {
    name: 'a header with NUL',
    send: written([...head, of(operation), 'refold-pin: letter@1\u0000'], operation),
    status: 400,
  },
  {
    name: 'a name of a client with everything in it',
    send: posted(operation, { 'graphql-client-name': "'; drop table x; -- <script>alert(1)</script>" }),
    status: 200,
    codes: [],
  },
  {
    name: 'an id of correlation that breaks lines of a log',
    send: posted(operation, { 'x-correlation-id': 'a%0d%0ab' }),
    status: 200,
    codes: [],
  },
  { name: 'two lengths', send: written([...head, of(operation), 'Content-Length: 5'], operation), status: 400 },
  {
    name: 'a length and chunks',
    send: written([...head, of(operation), 'Transfer-Encoding: chunked'], operation),
    status: 400,
  },
  { name: 'a negative length', send: written([...head, 'Content-Length: -1'], operation), status: 400 },
  {
    name: 'a chunk of a size that is none',
    send: written([...head, 'Transfer-Encoding: chunked'], 'zz\r\n{}\r\n0\r\n\r\n'),
    status: 400,
  },
  {
    name: 'the protocol of TLS',
    send: (target) => sendBytes(target, Buffer.from('160301020001000001fc0303', 'hex')),
    status: 400,
  },
  {
    name: 'two tokens',
    send: written([...head, of(operation), 'Authorization: Bearer x'], operation),
    status: [200, 401],
  },
  {
    name: 'a pin twice',
    send: written([...head, of(operation), 'refold-pin: letter@1', 'refold-pin: letter@1'], operation),
    status: 400,
    codes: ['BAD_USER_INPUT'],
  },
  {
    name: 'a position twice',
    send: written([...head, of(operation), 'refold-after: 1', 'refold-after: 2'], operation),
    status: 400,
    codes: ['BAD_USER_INPUT'],
  },
];

const tokens: readonly HttpAttempt[] = [
  'Bearer x',
  'Bearer',
  'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.',
  'Basic YWRhOnNlY3JldA==',
  "Bearer ' or '1'='1",
  `Bearer ${'a'.repeat(12_000)}`,
].map(
  (authorization): HttpAttempt => ({
    name: `the token ${authorization.slice(0, 40)}`,
    send: posted(operation, { authorization }),
    status: 401,
    codes: ['UNAUTHENTICATED'],
  }),
);

const streamPath = '/graphql/stream';

function streamed(
  method: string,
  headers: Record<string, string> = {},
  { body = '', path = '' }: { body?: string; path?: string } = {},
): HttpAttempt['send'] {
  return (target, authorization) =>
    sendHttp(target, { method, path: `${streamPath}${path}`, headers: { authorization, ...headers }, body });
}

/** With a stream that a viewer of another tenant reserved: its token, for the attempts. */
function withForeignStream(attempt: (token: string) => HttpAttempt['send']): HttpAttempt['send'] {
  return async (target, authorization) => {
    const reserved = { method: 'PUT', path: streamPath, headers: { authorization: `Bearer ${target.foreignBearer}` } };
    const { body } = await sendHttp(target, reserved);
    return attempt(body)(target, authorization);
  };
}

const tokenHeader = 'x-graphql-event-stream-token';
const ofStream = JSON.stringify({ query: mutation, extensions: { operationId: '1' } });
const none = { status: 404, codes: ['BAD_REQUEST'] } as const;

const singleConnection: readonly HttpAttempt[] = [
  { name: 'a stream that nobody reserved', send: streamed('GET', { accept: 'text/event-stream' }), ...none },
  {
    name: 'a stream of the name of a prototype',
    send: streamed('GET', { accept: 'text/event-stream' }, { path: '?token=__proto__' }),
    ...none,
  },
  {
    name: "another viewer's stream",
    send: withForeignStream((token) => streamed('GET', { accept: 'text/event-stream' }, { path: `?token=${token}` })),
    ...none,
  },
  {
    name: "an operation on another viewer's stream",
    send: withForeignStream((token) =>
      streamed('POST', { 'content-type': json, [tokenHeader]: token }, { body: ofStream }),
    ),
    ...none,
  },
  {
    name: "an end of another viewer's operation",
    send: withForeignStream((token) => streamed('DELETE', { [tokenHeader]: token }, { path: '?operationId=1' })),
    ...none,
  },
  {
    name: 'a reservation from another site',
    send: streamed('PUT', { 'sec-fetch-site': 'cross-site' }),
    status: 403,
    codes: ['FORBIDDEN'],
  },
  {
    name: 'a reservation with a token that does not count',
    send: streamed('PUT', { authorization: 'Bearer x' }),
    status: 401,
    codes: ['UNAUTHENTICATED'],
  },
  { name: 'a method that streams have not', send: streamed('PATCH'), status: 405, codes: ['BAD_REQUEST'] },
  ...(
    [
      ['as plain text', 415, 'BAD_REQUEST', { 'content-type': 'text/plain' }, ofStream, false],
      ['under no id', 400, 'BAD_REQUEST', { 'content-type': json }, operation, false],
      ['in broken JSON', 400, 'BAD_REQUEST', { 'content-type': json }, '{', false],
      ['in a huge body', 413, 'REQUEST_TOO_LARGE', { 'content-type': json }, huge, false],
      ['in a huge body in chunks', 413, 'REQUEST_TOO_LARGE', { 'content-type': json }, huge, true],
    ] as const
  ).map(
    ([how, status, code, headers, body, chunked]): HttpAttempt => ({
      name: `an operation on a stream ${how}`,
      async send(target, authorization) {
        const { body: token } = await sendHttp(target, { method: 'PUT', path: streamPath, headers: { authorization } });
        const sent = { authorization, [tokenHeader]: token, ...headers };
        return sendHttp(target, { path: streamPath, headers: sent, body, chunked });
      },
      status,
      codes: [code],
    }),
  ),
];

export const httpAttempts: readonly HttpAttempt[] = [
  ...bodies,
  ...contentTypes,
  ...crossSite,
  ...heads,
  ...tokens,
  ...singleConnection,
];
