import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Frame } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { anonymous } from '../../../src/access.ts';
import { launchBrowser } from '../../support/browser.ts';
import { startGateway } from '../gateway-under-test.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

/** A page of a site of its own. Each port is an origin. */
async function site(): Promise<string> {
  const server = createServer((_, res) =>
    res.setHeader('content-type', 'text/html').end('<!doctype html><title>A page</title>'),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a page tries, in the browser: each way ends with what the page could read, or with `blocked`. */
function tryEach({ url, credentials }: { readonly url: string; readonly credentials: RequestCredentials }) {
  const blocked = () => 'blocked';
  const body = JSON.stringify({ query: '{ __typename }' });
  const json = { 'content-type': 'application/json' };
  const read = async (path: string, options: RequestInit) => {
    const response = await fetch(url + path, { credentials, ...options });
    const first = await response.body?.getReader().read();
    return `${response.status} ${new TextDecoder().decode(first?.value)}`.split('_')[0] ?? '';
  };
  const socket = () =>
    new Promise<string>((resolve) => {
      const opened = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
      opened.onopen = () => resolve('open');
      opened.onerror = () => resolve('blocked');
    });
  return Promise.all([
    read('/graphql', { method: 'POST', headers: json, body }).catch(blocked),
    read('/graphql?slow', { method: 'POST', headers: json, body }).catch(blocked), // by yoga
    read('/graphql?query={__typename}', { headers: { 'refold-csrf': '1' } }).catch(blocked),
    read('/graphql?query={__typename}', {}).catch(blocked), // without a preflight
    read('/graphql', { method: 'POST', headers: { ...json, accept: 'text/event-stream' }, body }).catch(blocked),
    read('/graphql/stream', { method: 'PUT' }).then((answer) => answer.slice(0, 3), blocked),
    read('/graphql/stream?token=none', { headers: { accept: 'text/event-stream' } }).then(
      (answer) => answer.slice(0, 3),
      blocked,
    ),
    read('/health/live', {}).then((answer) => answer.slice(0, 3), blocked),
    socket(),
  ]);
}

const everything = [
  '200 {"data":{"',
  '200 {"data":{"',
  '200 {"data":{"',
  expect.stringMatching(/^403 /), // CSRF prevention: the page may read the refusal
  expect.stringMatching(/^200 :\n\nevent: next/),
  '201',
  '404',
  '200',
  'open',
];
const nothing = everything.map(() => 'blocked');

/** Opens a page of a site, and a sandboxed frame in it, which has the origin `null`. */
async function framesOf(address: string): Promise<{ readonly page: Frame; readonly sandbox: Frame }> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  // A session as strict sites have to set it for pages of other sites.
  await context.addCookies([
    { name: 'session', value: 'ann', domain: '127.0.0.1', path: '/', sameSite: 'None', secure: true },
  ]);
  const page = await context.newPage();
  await page.goto(address);
  await page.setContent('<iframe sandbox="allow-scripts" srcdoc="<title>A frame</title>"></iframe>');
  const [frame, sandbox] = page.frames();
  if (!frame || !sandbox) throw new Error('The page has no frame.');
  expect(await sandbox.evaluate(() => origin)).toBe('null');
  return { page: frame, sandbox };
}

const cases = [1, 3].flatMap((count) => [true, false].map((credentials) => ({ count, credentials })));

test.each(cases)('a browser lets listed origins read and no others: $count listed, credentials $credentials', async ({
  count,
  credentials,
}) => {
  const [listed, unlisted] = [await site(), await site()];
  const origins = [listed, 'https://shop.example.com', 'https://desk.example.com'].slice(0, count);
  const cookies = new Set<string | undefined>();
  const tested = await startGateway({
    options: { cors: { origins, credentials } },
    auth({ header }) {
      cookies.add(header('cookie'));
      return header('cookie') === 'session=ann' ? { ...anonymous, id: 'ann' } : null;
    },
  });
  const { url } = tested.gateway;
  const own = await framesOf(listed);
  expect(await own.page.evaluate(tryEach, { url, credentials: 'omit' as const })).toEqual(everything);
  // The browser hides what was answered to a request with cookies, and a socket always carries them.
  const withCookies = await own.page.evaluate(tryEach, { url, credentials: 'include' as const });
  expect(withCookies).toEqual(credentials ? everything : [...nothing.slice(1), 'open']);
  expect(cookies.has('session=ann')).toBe(credentials);

  cookies.clear();
  const foreign = await framesOf(unlisted);
  for (const frame of [own.sandbox, foreign.page, foreign.sandbox])
    for (const mode of ['omit', 'include'] as const)
      expect(await frame.evaluate(tryEach, { url, credentials: mode })).toEqual(nothing);
  expect([...cookies].filter((cookie) => cookie !== undefined)).toEqual([]);
});
