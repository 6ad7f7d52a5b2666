import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from 'graphql-ws';
import { exportJWK, generateKeyPair, type JSONWebKeySet, type JWK, type JWTPayload, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import WebSocket from 'ws';
import { createPublishedKeys } from '../../../src/gateway/policies/published-keys.ts';
import { type JwtOptions, jwt } from '../../../src/index.ts';
import { until } from '../../support/until.ts';
import { startGateway, type TestOptions } from '../gateway-under-test.ts';

const issuer = 'https://login.example.com/';
const audience = 'parcels';

interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: object;
}

async function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
}

function tokenBy({ kid, alg, privateKey }: SigningKey, claims: JWTPayload = {}): Promise<string> {
  const exp = Math.floor(Date.now() / 1000) + 600;
  return new SignJWT({ sub: 'ada', iss: issuer, aud: audience, exp, ...claims })
    .setProtectedHeader({ alg, kid })
    .sign(privateKey);
}

/** A real key server; `answer` is its response, which can change at any time. */
async function startKeyServer(first: readonly SigningKey[]) {
  const state = { requests: 0, status: 200, body: '', hold: Promise.resolve() };
  const publish = (keys: readonly SigningKey[]) => {
    state.status = 200;
    state.body = JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
  };
  publish(first);
  const server = createServer((_, response) => {
    state.requests++;
    const { status, body } = state;
    void state.hold.then(() => response.writeHead(status, { 'content-type': 'application/json' }).end(body));
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(() => (server.listening ? stop() : undefined));
  return { url: new URL(`http://127.0.0.1:${port}/jwks.json`), state, publish, stop, restart: () => listen(port) };
}

function start(keys: JwtOptions['keys'], more: Partial<JwtOptions> = {}, options: TestOptions['options'] = {}) {
  return startGateway({ auth: jwt({ keys, issuer, audience, ...more }), options });
}

type KeyServer = Awaited<ReturnType<typeof startKeyServer>>;

const query = '{ parcels { nodes { parcelId } } }';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test.for(['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'])('a token signed with %s is accepted', async (alg) => {
  const key = await signingKey('one', alg);
  const { url } = await startKeyServer([key]);
  const { post } = await start(url);
  expect(await post(query, {}, bearer(await tokenBy(key)))).toMatchObject({ status: 200, data: {} });
  const forged = await signingKey('one', alg);
  expect(await post(query, {}, bearer(await tokenBy(forged)))).toMatchObject({
    status: 401,
    errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
  });
});

test('a token without a key id is accepted if one of the published keys signed it', async () => {
  const keys = [await signingKey('one'), await signingKey('two')] as const;
  const { url } = await startKeyServer(keys);
  const { post } = await start(url);
  const claims = { sub: 'ada', iss: issuer, aud: audience, exp: Math.floor(Date.now() / 1000) + 600 };
  const unnamed = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(keys[1].privateKey);
  expect(await post(query, {}, bearer(unnamed))).toMatchObject({ status: 200 });
  const other = await signingKey('three');
  const foreign = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(other.privateKey);
  expect(await post(query, {}, bearer(foreign))).toMatchObject({ status: 401 });
});

test('of 1,000 requests during a rotation, none is refused or accepted wrongly', async () => {
  const [kept, withdrawn, added, late, foreign] = await Promise.all([
    signingKey('kept'),
    signingKey('withdrawn'),
    signingKey('added'),
    signingKey('late'),
    signingKey('foreign'),
  ]);
  const server = await startKeyServer([kept, withdrawn]);
  const { post, logged } = await start(server.url);
  const tokens = {
    kept: await tokenBy(kept),
    withdrawn: await tokenBy(withdrawn),
    added: await tokenBy(added),
    late: await tokenBy(late),
    forged: await tokenBy({ ...foreign, kid: 'kept' }),
    foreign: await tokenBy(foreign),
  };
  type Who = keyof typeof tokens;
  let requests = 0;

  /** Sends concurrent requests of all of these, a twentieth of them forged; returns each one's statuses. */
  async function send(count: number, ...who: Who[]): Promise<Partial<Record<Who, number[]>>> {
    const statuses = new Map<Who, Set<number>>();
    const answered = Array.from({ length: count }, async (_, n) => {
      const one = n % 20 === 0 ? 'forged' : (who[n % who.length] as Who); // one is given at least
      requests++;
      const { status } = await post(query, {}, bearer(tokens[one]));
      statuses.set(one, (statuses.get(one) ?? new Set()).add(status));
    });
    await Promise.all(answered);
    return Object.fromEntries([...statuses].map(([one, seen]) => [one, [...seen]]));
  }

  expect(await send(299, 'kept', 'withdrawn')).toEqual({ forged: [401], kept: [200], withdrawn: [200] });
  expect(await send(1, 'foreign')).toEqual({ forged: [401] });
  server.publish([kept, withdrawn, added]);
  expect(await send(99, 'kept', 'withdrawn', 'added', 'foreign')).toEqual({
    forged: [401],
    kept: [200],
    withdrawn: [200],
    added: [200],
    foreign: [401],
  });

  // The key server fails in the middle: nobody can know whether an unknown key is valid, so no client is sent to sign in again.
  server.publish([kept, withdrawn, added, late]);
  await server.stop();
  const known = { forged: [401], kept: [200], withdrawn: [200], added: [200] };
  expect(await send(101, 'kept', 'withdrawn', 'added', 'late', 'foreign')).toEqual({
    ...known,
    late: [503],
    foreign: [503],
  });
  server.state.body = '<html>';
  await server.restart();
  expect(await send(100, 'kept', 'withdrawn', 'added', 'late')).toEqual({ ...known, late: [503] });
  server.publish([kept, withdrawn, added, late]);
  expect(await send(100, 'kept', 'withdrawn', 'added', 'late')).toEqual({ ...known, late: [200] });

  // A withdrawn key is accepted until the keys are fetched again, and not after that.
  server.publish([kept, added, late]);
  expect((await post(query, {}, bearer(tokens.foreign))).status).toBe(401); // fetches
  const last = { forged: [401], kept: [200], added: [200], late: [200] };
  expect(await send(300, 'kept', 'added', 'late', 'withdrawn')).toEqual({ ...last, withdrawn: [401] });
  expect(requests).toBe(1000);
  expect(server.state.requests).toBeLessThan(100);
  const lines = logged.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
  expect(lines.at(0)).toContain(`authentication: The keys at ${server.url.href} can't be used: `);
  expect(lines.at(-1)).toContain('expected a JSON Web Key Set');
  expect(lines.length).toBeLessThan(5);
});

test('a token is verified again when the keys have changed: one by a withdrawn key is refused', async () => {
  const [withdrawn, kept, added] = [await signingKey('withdrawn'), await signingKey('kept'), await signingKey('added')];
  const { url, publish } = await startKeyServer([withdrawn, kept]);
  const { post } = await start(url);
  const tokens = { withdrawn: await tokenBy(withdrawn), kept: await tokenBy(kept), added: await tokenBy(added) };
  expect(await post(query, {}, bearer(tokens.withdrawn))).toMatchObject({ status: 200 });
  expect(await post(query, {}, bearer(tokens.kept))).toMatchObject({ status: 200 });
  publish([kept, added]);
  expect(await post(query, {}, bearer(tokens.added))).toMatchObject({ status: 200 }); // fetches
  expect(await post(query, {}, bearer(tokens.withdrawn))).toMatchObject({ status: 401 });
  expect(await post(query, {}, bearer(tokens.kept))).toMatchObject({ status: 200 });
});

test('old keys are fetched again, and used for a limited time while the server is down', async () => {
  const [first, second] = [await signingKey('first'), await signingKey('second')];
  const server = await startKeyServer([first]);
  let time = 0;
  const limits = { refreshSeconds: 300, maxAgeSeconds: 3600, timeoutSeconds: 5 };
  const keys = createPublishedKeys(server.url, { ...limits, now: () => time });
  const { generation } = await keys.current();
  time = 299_000;
  await keys.current();
  expect(server.state.requests).toBe(1);

  // Just old: the known keys are used, and the next ones are fetched meanwhile.
  server.publish([second]);
  time = 301_000;
  expect((await keys.current()).generation).toBe(generation);
  await until(async () => (await keys.current()).generation === generation + 1);

  // After a long time without requests, a key that was withdrawn meanwhile is not used again.
  server.publish([first]);
  time = 1_000_000;
  expect((await keys.current()).generation).toBe(generation + 2);

  await server.stop();
  time = 2_000_000;
  expect((await keys.current()).generation).toBe(generation + 2);
  expect(keys.problem()).toContain(`The keys at ${server.url.href} can't be used`);
  time = 1_000_000 + 3_600_000;
  await expect(keys.current()).rejects.toMatchObject({ code: 'AUTHENTICATION_UNAVAILABLE' });

  await server.restart();
  time += 5000;
  expect((await keys.current()).generation).toBe(generation + 2);
  expect(keys.problem()).toBeUndefined();
});

test.for([
  ['is down', async ({ stop }) => stop()],
  ['answers with an error', async ({ state }) => void Object.assign(state, { status: 500, body: '{"keys":[]}' })],
  ['answers with garbage', async ({ state }) => void Object.assign(state, { body: '<html>' })],
  ['answers with something else', async ({ state }) => void Object.assign(state, { body: '{"keys":[7]}' })],
] satisfies [
  string,
  (server: KeyServer) => Promise<void>,
][])('if the key server %s, operations with a token get 503 and one line is logged', async ([, fail]) => {
  const key = await signingKey('one');
  const server = await startKeyServer([key]);
  await fail(server);
  const { post, logged } = await start(server.url);
  const token = await tokenBy(key);
  for (let n = 0; n < 5; n++) {
    const answer = await post(query, {}, bearer(token));
    expect(answer).toMatchObject({ status: 503, errors: [{ extensions: { code: 'AUTHENTICATION_UNAVAILABLE' } }] });
    expect(JSON.stringify(answer.errors)).not.toContain(server.url.port);
  }
  expect(await post(query)).toMatchObject({ status: 200 }); // an anonymous operation needs no keys
  const lines = logged.filter(({ level }) => Number(level) >= 40);
  expect(lines).toMatchObject([{ msg: expect.stringContaining(`The keys at ${server.url.href} can't be used`) }]);
});

test('all requests that need keys wait for one fetch from a slow key server', async () => {
  const key = await signingKey('one');
  const { url, state } = await startKeyServer([key]);
  const { post } = await start(url);
  const token = await tokenBy(key);
  let answer = () => {};
  state.hold = new Promise((resolve) => {
    answer = resolve;
  });
  const waiting = Array.from({ length: 20 }, () => post(query, {}, bearer(token)));
  await until(() => state.requests === 1);
  answer();
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
  expect(state.requests).toBe(1);
});

test('a fetch whose body never comes is aborted after keysTimeoutSeconds, here a tenth of a second', async () => {
  const key = await signingKey('one');
  const silent = createServer((_, response) => void response.writeHead(200).write('{"keys":['));
  await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close().closeAllConnections());
  const { port } = silent.address() as AddressInfo;
  const { post, logged } = await start(new URL(`http://127.0.0.1:${port}/jwks.json`), { keysTimeoutSeconds: 0.1 });
  expect(await post(query, {}, bearer(await tokenBy(key)))).toMatchObject({ status: 503 });
  const lines = logged.filter(({ level }) => Number(level) >= 40);
  expect(lines).toMatchObject([{ msg: expect.stringContaining('it took too long to answer') }]);
});

test('a published key that is broken refuses no token of another key, and one line is logged', async () => {
  const [whole, broken] = [await signingKey('whole'), await signingKey('broken')];
  const { x: _, ...incomplete } = broken.jwk as JWK;
  // No issuer signs with these, so they are not a problem.
  const others = [
    { kty: 'LWE', kid: 'new' },
    { kty: 'EC', crv: 'secp256k1', kid: 'coin' },
    { ...incomplete, use: 'enc' },
  ];
  const { url } = await startKeyServer([whole, ...[incomplete, ...others].map((jwk) => ({ ...broken, jwk }))]);
  const { post, logged } = await start(url);
  const tokens = { whole: await tokenBy(whole), broken: await tokenBy(broken) };
  for (let n = 0; n < 2; n++) {
    expect(await post(query, {}, bearer(tokens.whole))).toMatchObject({ status: 200 });
    expect(await post(query, {}, bearer(tokens.broken))).toMatchObject({
      status: 503,
      errors: [{ extensions: { code: 'AUTHENTICATION_UNAVAILABLE' } }],
    });
  }
  const lines = logged.filter(({ level }) => Number(level) >= 40);
  expect(lines).toMatchObject([
    { msg: expect.stringMatching(/^authentication: Some keys at .* can't be used: 'broken' \([^']*\)\. /) },
  ]);
});

test("a WebSocket client is asked to try again later if its token can't be checked", async () => {
  const key = await signingKey('one');
  const server = await startKeyServer([key]);
  await server.stop();
  const { endpoint } = await start(server.url);
  const client = createClient({
    url: endpoint.replace('http:', 'ws:'),
    webSocketImpl: WebSocket,
    connectionParams: bearer(await tokenBy(key)),
    retryAttempts: 0,
  });
  const closed = new Promise((resolve, reject) => {
    client.subscribe({ query }, { next: () => {}, error: resolve, complete: () => reject(new Error('completed')) });
  });
  expect(await closed).toMatchObject({ code: 1013 });
});

test('clocks may differ by clockTolerance, also for a token that has just expired', async () => {
  const key = await signingKey('one');
  const keys: JSONWebKeySet = { keys: [key.jwk as JSONWebKeySet['keys'][number]] };
  const { post } = await start(keys, { clockTolerance: 3600 });
  const now = Math.floor(Date.now() / 1000);
  expect(await post(query, {}, bearer(await tokenBy(key, { exp: now - 600 })))).toMatchObject({ status: 200 });
  expect(await post(query, {}, bearer(await tokenBy(key, { exp: now - 7200 })))).toMatchObject({ status: 401 });
  expect(await post(query, {}, bearer(await tokenBy(key, { nbf: now + 600 })))).toMatchObject({ status: 200 });
});

test.for([[''], [7], [null], [{ id: 'ada' }]])('a token whose sub is %j is refused', async ([sub]) => {
  const key = await signingKey('one');
  const { post } = await start({ keys: [key.jwk as JSONWebKeySet['keys'][number]] });
  const token = await tokenBy(key, { sub: sub as string });
  expect(await post(query, {}, bearer(token))).toMatchObject({ status: 401 });
});

test('keys are fetched over https, or from the same machine', () => {
  const at = (keys: string) => () => jwt({ keys: new URL(keys), issuer, audience });
  expect(at('http://login.example.com/jwks.json')).toThrow("'keys' is at http://login.example.com. Use https:");
  expect(at('ftp://127.0.0.1/jwks.json')).toThrow('Use https:');
  for (const url of ['https://login.example.com/k', 'http://localhost:1/k', 'http://127.0.0.1:1/k', 'http://[::1]:1/k'])
    expect(at(url)).not.toThrow();
});
