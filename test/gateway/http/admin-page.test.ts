import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAdminPage } from '../../../scripts/build-admin.ts';
import { serveAdminPage } from '../../../src/gateway/http/admin-page.ts';

let folder: string;
let page: Served;
let built: Served;
let absent: Served;

beforeAll(async () => {
  await buildAdminPage();
  folder = await mkdtemp(join(tmpdir(), 'refold-admin-page-'));
  await mkdir(join(folder, 'page/assets'), { recursive: true });
  await writeFile(join(folder, 'page/index.html'), '<!doctype html><title>Admin</title>');
  await writeFile(join(folder, 'page/assets/index-abc123.js'), 'export {};');
  await writeFile(join(folder, 'secret.txt'), 'secret');
  page = await serve(serveAdminPage(join(folder, 'page')));
  built = await serve(serveAdminPage());
  absent = await serve(serveAdminPage(join(folder, 'absent')));
});

afterAll(async () => {
  await Promise.all([page, built, absent].map((served) => served.close()));
  await rm(folder, { recursive: true });
});

test('/admin leads to /admin/, by a relative address, so that a prefix of a proxy stays', async () => {
  const response = await fetch(`${page.url}/admin`, { redirect: 'manual' });
  expect(response.status).toBe(308);
  expect(response.headers.get('location')).toBe('admin/');
  expect((await fetch(`${page.url}/admin`)).url).toBe(`${page.url}/admin/`);
});

test('every file has its type, and a policy under which only files of its own origin are loaded', async () => {
  const index = await fetch(`${page.url}/admin/`);
  expect(await index.text()).toContain('<title>Admin</title>');
  const script = await fetch(`${page.url}/admin/assets/index-abc123.js`);
  expect(await script.text()).toBe('export {};');
  expect(index.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  for (const { headers } of [index, script, await fetch(`${page.url}/admin/none.js`)]) {
    const policy = headers.get('content-security-policy');
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

test('files with a hash in their name are kept for good, and the page itself is revalidated by its tag', async () => {
  const script = await fetch(`${page.url}/admin/assets/index-abc123.js`);
  expect(script.headers.get('cache-control')).toContain('immutable');
  const index = await fetch(`${page.url}/admin/`);
  expect(index.headers.get('cache-control')).toBe('no-cache');
  const again = await fetch(`${page.url}/admin/`, { headers: { 'if-none-match': index.headers.get('etag') ?? '' } });
  expect(again.status).toBe(304);
  expect(await again.text()).toBe('');
});

test('no path leads out of the folder', async () => {
  for (const path of [
    '/admin/../secret.txt',
    '/admin/..%2fsecret.txt',
    '/admin/%2e%2e/secret.txt',
    '/admin/assets/../../secret.txt',
    '/admin/..\\secret.txt',
    '/admin//../secret.txt',
    '/admin/./../../secret.txt',
    '/admin/assets',
    '/admin/__proto__',
    `/admin/${'../'.repeat(20)}etc/passwd`,
  ]) {
    const answer = await rawGet(page, path);
    expect(answer, path).toMatch(/^HTTP\/1\.1 (404|299) /);
    expect(answer, path).not.toContain('secret\n');
  }
});

test('only GET and HEAD are for files; what belongs to the API goes on', async () => {
  const head = await fetch(`${page.url}/admin/`, { method: 'HEAD' });
  expect(head.headers.get('content-length')).not.toBe('0');
  expect(await head.text()).toBe('');
  const post = await fetch(`${page.url}/admin/`, { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  for (const path of ['/admin/graphql', '/administration', '/graphql', '/'])
    expect((await fetch(`${page.url}${path}`)).status, path).toBe(299);
});

test('a page that is not built says how to build it', async () => {
  const response = await fetch(`${absent.url}/admin/`);
  expect(response.status).toBe(503);
  expect(await response.text()).toContain('npm run build:admin');
});

test('the first page needs at most 60 KB over the network', async () => {
  const headers = { 'accept-encoding': 'gzip' };
  const index = await (await fetch(`${built.url}/admin/`, { headers })).text();
  const named = [...index.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, path]) => path ?? '');
  expect(named.map((path) => path.replace(/.*\./, '')).sort()).toEqual(['css', 'js', 'svg']);
  let size = 0;
  for (const path of ['', ...named]) {
    const response = await fetch(`${built.url}/admin/${path}`, { method: 'HEAD', headers });
    expect(response.headers.get('content-encoding'), path).toBe('gzip');
    size += Number(response.headers.get('content-length'));
  }
  expect(size).toBeGreaterThan(10_000);
  expect(size).toBeLessThan(60_000);
});

test('the built page has nothing inline, and nothing of another origin', async () => {
  const index = await (await fetch(`${built.url}/admin/`)).text();
  expect(index).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=|https?:\/\//);
});

interface Served {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** What the handler passes on is answered with 299. */
async function serve(handler: ReturnType<typeof serveAdminPage>): Promise<Served> {
  const next: RequestListener = (_, res) => void res.writeHead(299).end();
  const server = createServer((req, res) => handler(req, res, next));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections()),
  };
}

/** Sends the path as it is; `fetch` would resolve the dots. */
function rawGet({ port }: Served, path: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  return text(socket);
}
