import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, posix } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser } from '../support/browser.ts';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

let site: string;
let pages: readonly string[];
let server: Server;
let url: string;
let browser: Browser;

beforeAll(async () => {
  site = await mkdtemp(join(tmpdir(), 'refold-docs-site-'));
  const built = spawn('node_modules/.bin/vitepress', ['build', 'docs', '--outDir', site]);
  const [[code], stdout, stderr] = await Promise.all([once(built, 'close'), text(built.stdout), text(built.stderr)]);
  expect(code, stdout + stderr).toBe(0);
  pages = globSync('**/*.html', { cwd: site }).filter((page) => page !== '404.html');
  server = createServer(async ({ url: path = '/' }, response) => {
    const file = join(site, decodeURIComponent(path.replace(/[?#].*/, '').replace(/\/$/, '/index.html')));
    response.statusCode = existsSync(file) ? 200 : 404;
    response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream');
    response.end(response.statusCode === 200 ? await readFile(file) : undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  server.close();
  await rm(site, { recursive: true });
});

/** Opens a page; `problems` are errors that its console shows, and requests to other servers. */
async function opened(path: string, width = 1280): Promise<{ page: Page; problems: string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  const problems: string[] = [];
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => request.url().startsWith(url) || problems.push(request.url()));
  await page.goto(`${url}/${path}`, { waitUntil: 'networkidle' });
  return { page, problems };
}

test('every link leads to a page of the site, and to a heading that this page has', () => {
  const html = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]));
  const ids = new Map(
    [...html].map(([page, code]) => [page, new Set([...code.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  );
  const lost = [...html].flatMap(([page, code]) =>
    [...code.matchAll(/<a [^>]*href="([^"]+)"/g)]
      .map(([, href = '']) => new URL(href, `${url}/${page}`))
      .filter(({ origin }) => origin === url)
      .filter(({ pathname, hash }) => {
        const target = ids.get(posix.join(pathname.slice(1), pathname.endsWith('/') ? 'index.html' : ''));
        return !target || (hash !== '' && !target.has(decodeURIComponent(hash.slice(1))));
      })
      .map(({ pathname, hash }) => `${page}: ${pathname}${hash}`),
  );
  expect(pages.length).toBeGreaterThan(40);
  expect([...new Set(lost)]).toEqual([]);
});

test('no page shows an error in the console, or requests anything from another server', async () => {
  const own = pages.filter((page) => !page.startsWith('source/'));
  for (const path of own) {
    const { page, problems } = await opened(path);
    expect(problems, path).toEqual([]);
    await page.close();
  }
});

test('the search finds how to activate a version', async () => {
  const { page, problems } = await opened('index.html');
  await page.keyboard.press('Control+k');
  await page.locator('#localsearch-input').fill('activate');
  const found = page.locator('.VPLocalSearchBox .results a.result');
  await found.first().waitFor();
  expect(await found.count()).toBeGreaterThan(3);
  expect(await page.locator('.VPLocalSearchBox .results').innerText()).not.toContain('.ts');
  await page.keyboard.press('Enter');
  await page.locator('.VPLocalSearchBox').waitFor({ state: 'detached' });
  expect(await page.locator('main').innerText()).toMatch(/activate/i);
  expect(problems).toEqual([]);
});

test('diagrams are drawn in the colors of light and dark', async () => {
  const { page } = await opened('architecture.html');
  const color = () =>
    page
      .locator('.diagram svg text')
      .first()
      .evaluate((element) => getComputedStyle(element).fill);
  const light = await color();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.reload({ waitUntil: 'networkidle' });
  expect(await color()).not.toBe(light);
});

test('pages fit a phone', async () => {
  for (const path of ['index.html', 'architecture.html', 'options.html', 'operating.html']) {
    const { page } = await opened(path, 360);
    expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(360);
    await page.close();
  }
});
