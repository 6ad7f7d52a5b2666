import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAdminPage } from '../../scripts/build-admin.ts';
import { defineProjection, t } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { readVersion } from '../../src/store/registry/registry.ts';
import { launchBrowser } from '../support/browser.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { type AdminPage, openPage, runInDialog } from './open-page.ts';
import { cart, openShop, operator, type Shop } from './shop.ts';

const sales = defineProjection({
  name: 'sales',
  version: 1,
  store: 'analytics',
  events: cart,
  table: { product: t.text().primaryKey(), sold: t.integer() },
  key: (event) => (event.type === 'ItemAdded' ? event.payload.product : []),
  evolve: { ItemAdded: (row) => ({ sold: (row?.sold ?? 0) + 1 }) },
});

let server: PostgresCluster;
let shop: Shop;
let browser: Browser;
let admin: AdminPage;

beforeAll(async () => {
  await buildAdminPage();
  server = await startOwnServer();
  [shop, browser] = await Promise.all([openShop([sales], { analytics: { url: server.url } }), launchBrowser()]);
  admin = await openPage(browser, shop.page(operator), { width: 360, scheme: 'light' });
});
afterAll(async () => {
  await browser.close();
  await shop.close();
  await server.stop();
});

test('a version of another store is on the page with its store, and is operated there', async () => {
  const { page } = admin;
  const row = page.getByRole('row', { name: /^sales@1/ });
  await row.getByText('in the read store analytics').waitFor();
  await page
    .getByRole('row', { name: /refold-admin/ })
    .getByText('analytics')
    .first()
    .waitFor();
  await admin.check('stores-overview');
  await admin.go('#/versions/sales@1');
  await page.getByText('active, answers clients, in the read store analytics').waitFor();
  const pause = page.locator('main').getByRole('button', { name: 'Pause', exact: true });
  await runInDialog(page, pause, 'maintenance of the store');
  await page.getByText('Paused by ada.').waitFor();
  const store = createDatabase({ url: server.url });
  expect((await readVersion(store, sales))?.paused).toMatchObject({ by: 'ada', reason: 'maintenance of the store' });
  await store.close();
  await runInDialog(page, page.locator('main').getByRole('button', { name: 'Resume', exact: true }), 'it is over');
  await page.getByText('Paused by ada.').waitFor({ state: 'detached' });
  await admin.go('#/versions/sales@1/table');
  await page.getByText('sales_v1_pkey').first().waitFor();
  await admin.go('#/versions/sales@1/history');
  await page.getByRole('cell', { name: /it is over/ }).waitFor();
  expect(admin.complaints).toEqual([]);
});

test('a store that is away is named on each page that lacks what it has, until it responds', async () => {
  const { page } = admin;
  const notice = page.getByText('The read store analytics does not respond.').first();
  await admin.go('#/');
  await server.kill();
  await notice.waitFor();
  await page.getByRole('row', { name: /^sales@1/ }).waitFor({ state: 'detached' });
  await page.getByText(/analytics when it last responded, .*: sales@1 active at \d+\./).waitFor();
  await admin.check('stores-away');
  for (const address of ['#/dead-letters', '#/dead-letters?view=groups', '#/audit', '#/versions/carts@1/history']) {
    await admin.go(address);
    await notice.waitFor();
  }
  await admin.go('#/versions/sales@1');
  await page.getByRole('alert').getByText("The read store 'analytics' does not respond").waitFor();
  await admin.go('#/');
  await server.restart();
  await notice.waitFor({ state: 'detached' });
  expect(await page.getByText('when it last responded').count()).toBe(0);
  await page.getByRole('row', { name: /^sales@1/ }).waitFor();
});
