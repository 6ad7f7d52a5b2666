import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { acceptedEncoding, leastCompressed } from '../../../src/gateway/requests/compression.ts';
import { type GatewayUnderTest, startGateway, type TestOptions } from '../gateway-under-test.ts';

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  /** As received. */
  readonly bytes: Buffer;
}

/** By node:http, which does not decompress. */
async function send(url: string, options: RequestOptions, body?: string): Promise<Received> {
  const sent = request(url, options).end(body);
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

const decompressors = { zstd: zstdDecompressSync, br: brotliDecompressSync, gzip: gunzipSync };

async function withParcels(options?: TestOptions['options']): Promise<GatewayUnderTest> {
  const tested = await startGateway({ ...(options ? { options } : {}) });
  await tested.pack(Object.fromEntries(Array.from({ length: 100 }, (_, id) => [`parcel-${id}`, {}])));
  return tested;
}

const long = '{ parcels(first: 100) { nodes { parcelId weight status } } }';
const short = '{ parcels(first: 10) { nodes { parcelId } } }';

/** The responses of three ways through the gateway. */
async function ask({ endpoint }: GatewayUnderTest, query: string, headers: Record<string, string>) {
  const post = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
  const body = JSON.stringify({ query });
  return [
    await send(endpoint, post, body),
    await send(`${endpoint}?by=yoga`, post, body),
    await send(`${endpoint}?query=${encodeURIComponent(query)}`, {
      headers: { ...headers, accept: 'application/json' },
    }),
  ];
}

test.each([
  ['gzip, deflate, br, zstd', 'zstd'],
  ['gzip, deflate, br', 'br'],
  ['gzip, deflate', 'gzip'],
  ['GZIP', 'gzip'],
  ['br;q=0.5, gzip', 'gzip'],
  ['zstd;q=0, br;q=0, *', 'gzip'],
  ['*', 'zstd'],
  ['gzip;q=0', undefined],
  ['identity, gzip;q=0.5', undefined],
  ['identity;q=0.5, gzip', 'gzip'],
  ['*;q=0', undefined],
  ['gzip;q=x', undefined],
  ['deflate', undefined],
  ['', undefined],
  [undefined, undefined],
])('a client that accepts %j gets %j', (header, encoding) => {
  expect(acceptedEncoding(header)).toBe(encoding);
});

test('long responses are compressed as the client accepts, on every way through the gateway', async () => {
  const tested = await withParcels();
  const [plain] = await ask(tested, long, {});
  expect(plain?.bytes.length).toBeGreaterThan(leastCompressed);
  expect(plain?.headers).toMatchObject({ vary: 'accept-encoding', 'content-length': String(plain?.bytes.length) });
  expect(plain?.headers).not.toHaveProperty('content-encoding');
  for (const [encoding, decompress] of Object.entries(decompressors)) {
    for (const { status, headers, bytes } of await ask(tested, long, { 'accept-encoding': encoding })) {
      expect([status, headers['content-encoding'], headers.vary]).toEqual([200, encoding, 'accept-encoding']);
      expect(headers['content-length']).toBe(String(bytes.length));
      expect(bytes.length).toBeLessThan((plain?.bytes.length ?? 0) / 3);
      expect(decompress(bytes)).toEqual(plain?.bytes);
    }
  }
});

test('short responses are not compressed, and no responses if compression is off', async () => {
  const headers = { 'accept-encoding': 'gzip, br, zstd' };
  for (const [options, query] of [
    [{}, short],
    [{ compression: false }, long],
  ] as const) {
    for (const answer of await ask(await withParcels(options), query, headers)) {
      expect(JSON.parse(String(answer.bytes))).not.toHaveProperty('errors');
      expect(answer.headers).not.toHaveProperty('content-encoding');
      expect(answer.headers).not.toHaveProperty('vary');
    }
  }
});

test('the vary header names everything that a response depends on', async () => {
  const origin = 'https://shop.example.com';
  const tested = await withParcels({ cors: { origins: [origin, 'https://other.example.com'] } });
  for (const { headers } of await ask(tested, long, { origin, 'accept-encoding': 'br' }))
    expect(headers.vary?.toLowerCase().split(/, ?/).toSorted()).toEqual(['accept-encoding', 'origin']);
});

test('an event stream is not buffered', async () => {
  const tested = await withParcels();
  const headers = {
    'accept-encoding': 'gzip, br, zstd',
    accept: 'text/event-stream',
    'content-type': 'application/json',
  };
  const query = 'subscription { parcels(first: 100) { position nodes { parcelId weight status } } }';
  const sent = request(tested.endpoint, { method: 'POST', headers, agent: false }).end(JSON.stringify({ query }));
  const [response] = await once(sent, 'response');
  expect(response.headers['content-encoding']).toBe('none');
  let all = '';
  for await (const part of response) {
    all += part;
    if (all.includes('parcel-99')) break;
  }
  expect(all).toContain('event: next');
});

test('GraphiQL runs only its own script, and is compressed and cached', async () => {
  const { endpoint } = await startGateway({ development: true, defaultQuery: '{ __typename }' });
  const get = (headers: Record<string, string>) => send(endpoint, { headers: { accept: 'text/html', ...headers } });
  const { headers, bytes } = await get({});
  const page = String(bytes);
  const policy = String(headers['content-security-policy']);
  const script = /<script>(.*)<\/script>/s.exec(page)?.[1] ?? '';
  expect(policy).toContain(`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}';`);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(headers).toMatchObject({ vary: 'accept, accept-encoding', 'cache-control': 'no-cache' });
  const compressed = await get({ 'accept-encoding': 'zstd' });
  expect(compressed.headers['content-encoding']).toBe('zstd');
  expect(compressed.bytes.length).toBeLessThan(bytes.length / 3);
  expect(zstdDecompressSync(compressed.bytes).equals(bytes)).toBe(true);
  expect(compressed.headers.etag).toBe(headers.etag);
  const again = await get({ 'accept-encoding': 'zstd', 'if-none-match': String(headers.etag) });
  expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, headers.etag]);
});
