import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAdminPage } from '../../scripts/build-admin.ts';
import { launchBrowser } from '../support/browser.ts';
import { effort } from '../support/effort.ts';
import { type AdminPage, type Look, openPage } from './open-page.ts';
import { openShop, operator, reader, type Shop } from './shop.ts';

let shop: Shop;
let browser: Browser;

beforeAll(async () => {
  await buildAdminPage();
  [shop, browser] = await Promise.all([openShop(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await shop.close();
});

/** Each page, and a text that only its data brings. */
const pages: readonly (readonly [name: string, address: string, text: string])[] = [
  ['overview', '#/', 'A negative price.'],
  ['status', '#/versions/carts@2', 'Checkpoint'],
  ['stopped', '#/versions/strict_prices@1', 'Its processor has stopped.'],
  ['history', '#/versions/carts@1/history', 'building → ready'],
  ['verify', '#/versions/carts@2/verify', 'Folds the log again'],
  ['rollout', '#/versions/carts@2/rollout', 'breaking'],
  ['table', '#/versions/carts@1/table', 'carts_v1_pkey'],
  ['runs', '#/versions/carts@1/runs', 'Batches'],
  ['rows', '#/rows', 'customer-of-c1'],
  ['stepper', '#/rows?projection=carts&key=c2', 'ItemAdded'],
  ['dead-letters', '#/dead-letters', 'negative'],
  ['groups', '#/dead-letters?view=groups', 'negative'],
  ['log', '#/log', 'cart/c1'],
  ['event', '#/log/1', 'customer-of-c1'],
  ['clients', '#/clients', 'carts@2'],
  ['reactors', '#/reactors', 'mails'],
  ['reactor', '#/reactors/mails', 'Handled'],
  ['audit', '#/audit', 'building → ready'],
];

const looks: readonly Look[] = [
  { width: 1280, scheme: 'light' },
  { width: 360, scheme: 'dark' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
  { width: 390, scheme: 'dark' },
];

test.each(
  looks.slice(0, effort(5, 2)),
)('every page shows its data, without a serious finding of axe, $width wide and $scheme', async (look) => {
  const admin = await openPage(browser, shop.page(operator), look);
  for (const [name, address, text] of pages) {
    await admin.go(address);
    await admin.page.getByText(text).first().waitFor({ state: 'attached' });
    await admin.check(name);
  }
  expect(admin.complaints).toEqual([]);
  await admin.close();
});

test('the token goes out of the address, and stays in this tab until it is no longer wanted', async () => {
  const { page, close } = await openPage(browser, shop.page(operator), { width: 1280, scheme: 'light' });
  await page.getByText('strict_prices@1').first().waitFor();
  expect(page.url()).not.toContain(operator.token);
  await page.reload();
  await page.getByText('strict_prices@1').first().waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').fill('not-the-token-of-anybody');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('does not accept').waitFor();
  await page.getByLabel('Token').fill(reader.token);
  await page.keyboard.press('Enter');
  await page.getByText('may only read').waitFor();
  await close();
});

test('the theme is that of the system, or the one that was chosen', async () => {
  const { page, close } = await openPage(browser, shop.page(operator), { width: 1280, scheme: 'dark' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByLabel('Theme').selectOption('light');
  const light = await ground();
  expect(light).not.toBe(dark);
  await page.reload();
  await page.locator('h1').waitFor();
  expect(await ground()).toBe(light);
  await page.getByLabel('Theme').selectOption('auto');
  expect(await ground()).toBe(dark);
  await close();
});

test('on a phone, the menu opens, leads to a page and closes', async () => {
  const { page, close } = await openPage(browser, shop.page(operator), { width: 390, scheme: 'light' });
  const link = page.getByRole('link', { name: 'Audit log' });
  expect(await link.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Menu' }).click();
  await link.click();
  await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  await link.waitFor({ state: 'hidden' });
  await close();
});

test('the overview and a live tail follow the application', async () => {
  const admin = await openPage(browser, shop.page(operator), { width: 1280, scheme: 'light' });
  const { page } = admin;
  await page.getByText('live', { exact: true }).waitFor();
  const head = page.locator('dl.figures div', { has: page.locator('dt', { hasText: /^Head$/ }) }).locator('dd');
  const before = Number.parseInt(await head.innerText(), 10);
  await shop.append('c9', { type: 'Opened', payload: { customer: 'nine' } });
  await head.getByText(String(before + 1)).waitFor();
  await admin.go('#/log?live=1&types=ItemAdded');
  await page.getByText('waiting for new events').waitFor();
  await shop.append('c9', { type: 'ItemAdded', payload: { product: 'live', price: 2 } });
  await page.getByRole('link', { name: 'cart/c9' }).first().waitFor();
  await admin.close();
});

test('an event leads to the row that it touched, before and after it in both versions', async () => {
  const admin = await openPage(browser, shop.page(operator), { width: 1280, scheme: 'light' });
  const { page } = admin;
  await admin.go('#/log?stream=cart/c3&types=ItemAdded');
  await page.getByRole('rowheader').getByRole('link').last().click();
  await page.getByRole('link', { name: 'Show before and after' }).first().click();
  const table = page.getByRole('table', { name: 'The row before and after' });
  await table.waitFor();
  expect(await page.getByRole('listbox').getByRole('option', { selected: true }).innerText()).toContain('ItemAdded');
  const rowOf = (column: string) => table.getByRole('row', { name: new RegExp(`^${column}`) });
  expect(await rowOf('items').innerText()).toMatch(/0\s+1.*changed\s+0\s+1.*changed/s);
  expect(await rowOf('total').innerText()).toMatch(/no such column\s+no such column\s+0\s+4.*changed/s);
  await page.getByRole('listbox').press('ArrowDown');
  await page.getByText('Event 3 of').waitFor();
  expect(await rowOf('total').innerText()).toMatch(/4\s+13.*changed/s);
  await page.getByRole('listbox').press('Home');
  await page.getByText('The row is created.').first().waitFor();
  expect(await page.getByRole('button', { name: 'Back' }).isDisabled()).toBe(true);
  await admin.close();
});

test('a lost connection is shown, and found again without a reload', async () => {
  const admin: AdminPage = await openPage(browser, shop.page(operator), { width: 1280, scheme: 'light' });
  const { page } = admin;
  await page.getByText('strict_prices@1').first().waitFor();
  await shop.stopGateway();
  await page.getByText('connection lost').waitFor();
  await page.getByText('trying again').waitFor();
  expect(await page.getByText('strict_prices@1').first().isVisible()).toBe(true);
  await shop.startGateway();
  await page.getByText('live', { exact: true }).waitFor();
  await admin.close();
});
