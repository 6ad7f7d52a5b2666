import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig } from '../../src/index.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin, tokens, usualTokens } from './admin-under-test.ts';

let admin: AdminUnderTest;

beforeAll(async () => {
  admin = await startAdmin({
    projections: [balanceV1],
    gateway: {
      port: 0,
      cors: { origins: ['https://shop.example.com'] },
      admin: {
        tokens: usualTokens,
        authorize: ({ header }) =>
          header('x-operator') ? { name: `${header('x-operator')}`, rights: ['pause'] } : null,
      },
    },
  });
  await admin.refold.log.append({
    family: account,
    streamId: 'a',
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
    metadata: { correlationId: 'one' },
  });
});
afterAll(() => admin.close());

const send = (headers: Record<string, string>, init: RequestInit = {}) =>
  fetch(admin.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query: '{ me { name rights process } }' }),
    ...init,
  });

test('a caller without a valid token gets 401, and nothing of the application', async () => {
  for (const authorization of [
    undefined,
    'Bearer',
    'Bearer wrong-token-of-nobody',
    `Basic ${tokens.all}`,
    `Bearer ${tokens.all}x`,
  ]) {
    const response = await send(authorization === undefined ? {} : { authorization });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect((await response.json()).errors[0].extensions.code).toBe('UNAUTHENTICATED');
  }
  expect((await fetch(`${admin.refold.url}/admin/audit.csv`)).status).toBe(401);
});

test('a caller sees its name and its rights; authorize recognizes others', async () => {
  const { me } = await admin.data('{ me { name rights process } }', {}, tokens.read);
  expect(me).toEqual({ name: 'rea', rights: ['READ'], process: 'admin-test' });
  expect((await admin.data('{ me { rights } }')).me.rights).toContain('DISCARD_DEAD_LETTERS');
  const recognized = await (await send({ 'x-operator': 'grace' })).json();
  expect(recognized.data.me).toEqual({ name: 'grace', rights: ['READ', 'PAUSE'], process: 'admin-test' });
});

test('only POSTs of JSON are accepted, no other site is allowed, and nothing may be stored or run', async () => {
  const authorization = `Bearer ${tokens.all}`;
  const get = await fetch(`${admin.endpoint}?query={me{name}}`, { headers: { authorization } });
  expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  const form = await send({ authorization, 'content-type': 'text/plain' });
  expect(form.status).toBe(415);
  const other = await send({ authorization, origin: 'https://shop.example.com' });
  expect(other.headers.get('access-control-allow-origin')).toBeNull();
  expect(other.headers.get('cache-control')).toBe('no-store');
  expect(other.headers.get('content-security-policy')).toContain("default-src 'none'");
  const preflight = await fetch(admin.endpoint, {
    method: 'OPTIONS',
    headers: { origin: 'https://shop.example.com', 'access-control-request-method': 'POST' },
  });
  expect(preflight.status).toBe(405);
  expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
});

test('without the right data, no payload and no row is shown', async () => {
  const { data, errors } = await admin.post('{ events { items { position payload } } }', {}, tokens.read);
  expect(data.events.items[0].payload).toBeNull();
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN', right: 'DATA' });
  for (const query of [
    '{ rows(version: "balance@1") { items { key } } }',
    '{ rowHistory(projection: "balance", key: "a") { key } }',
  ])
    expect((await admin.post(query, {}, tokens.read)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
  const diff = '{ diff(older: "balance@1", newer: "balance@1") { position } }';
  expect((await admin.post(diff, {}, tokens.read)).errors?.[0]?.extensions).toMatchObject({ right: 'VERIFY' });
});

test('the log is searched, and an event leads to the rows that it touches', async () => {
  const { events } = await admin.data(
    '{ events(filter: { correlationId: "one", types: ["Opened"] }) { items { position family streamId type payload correlationId rows { version key hasHistory } } next } }',
  );
  expect(events).toEqual({
    items: [
      {
        position: '1',
        family: 'account',
        streamId: 'a',
        type: 'Opened',
        payload: { owner: 'Ada' },
        correlationId: 'one',
        rows: [{ version: 'balance@1', key: 'a', hasHistory: false }],
      },
    ],
    next: null,
  });
  const unknown = await admin.post('{ events(filter: { types: ["Opend"] }) { next } }');
  expect(unknown.errors?.[0]?.message).toContain("Did you mean 'Opened'?");
});

test('subscribers get the overview and new events over server-sent events', async () => {
  const follow = async (query: string) => {
    const response = await admin.subscribe(query);
    const messages: Record<string, never>[] = [];
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    const reading = (async () => {
      for (let text = ''; ; ) {
        const { value, done } = await reader.read();
        if (done) return;
        text += decoder.decode(value, { stream: true });
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const [, data] = /^data: (.*)$/m.exec(text.slice(0, end)) ?? [];
          if (data) messages.push(JSON.parse(data).data);
          text = text.slice(end + 2);
        }
      }
    })();
    const stop = async () => {
      await reader.cancel();
      await reading;
    };
    return { messages, stop };
  };
  const overview = await follow(
    'subscription { overviewChanges { overview { head } versions { id lag } removedVersions } }',
  );
  const appended = await follow('subscription { eventsAppended(filter: { types: ["Credited"] }) { position type } }');
  await until(() => overview.messages.length > 0 && appended.messages.length > 0);
  expect(overview.messages[0]).toMatchObject({
    overviewChanges: { versions: [{ id: 'balance@1' }], removedVersions: [] },
  });
  expect(appended.messages[0]).toEqual({ eventsAppended: [] });
  await admin.refold.log.append({
    family: account,
    streamId: 'a',
    events: [{ type: 'Credited', payload: { amount: '1' } }],
  });
  await until(() => appended.messages.some((message) => JSON.stringify(message).includes('"Credited"')));
  await until(() => overview.messages.some((message) => JSON.stringify(message).includes('"head":"2"')));
  await overview.stop();
  await appended.stop();
});

test('the audit log is a file of CSV, whose texts no spreadsheet runs', async () => {
  await admin.refold.lifecycle.pause('balance', 1, { actor: '=cmd()', reason: 'a "reason", with all' });
  await admin.refold.lifecycle.resume('balance', 1, { actor: 'ada', reason: 'again' });
  const response = await fetch(`${admin.refold.url}/admin/audit.csv?projection=balance`, {
    headers: { authorization: `Bearer ${tokens.read}` },
  });
  expect(response.headers.get('content-type')).toContain('text/csv');
  const lines = (await response.text()).trim().split('\r\n');
  expect(lines[0]).toBe('at,of,operation,from,to,fromPosition,toPosition,actor,reason,store');
  expect(lines[1]).toMatch(/,balance@1,operation,active,active,,,ada,resumed: again,default$/);
  expect(lines[2]).toMatch(/,'=cmd\(\),"paused: a ""reason"", with all",default$/);
  const wrong = await fetch(`${admin.refold.url}/admin/audit.csv?since=yesterday`, {
    headers: { authorization: `Bearer ${tokens.read}` },
  });
  expect(wrong.status).toBe(400);
});

test('a gateway without admin serves nothing there', async () => {
  const database = await createTestDatabase();
  const refold = await createRefold(defineConfig({ database: { url: database.url }, gateway: { port: 0 } }));
  const response = await fetch(`${refold.url}/admin/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens.all}` },
    body: JSON.stringify({ query: '{ me { name } }' }),
  });
  expect(response.status).toBe(404);
  expect(await response.text()).toContain("'gateway.admin'");
  await refold.stop();
  await database.drop();
});
