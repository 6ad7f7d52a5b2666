import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAdminPage } from '../../scripts/build-admin.ts';
import { launchBrowser } from '../support/browser.ts';
import { effort } from '../support/effort.ts';
import { type AdminPage, type Look, openPage, runInDialog } from './open-page.ts';
import { code, openShop, operator, reader, type Shop } from './shop.ts';

const looks: readonly Look[] = [
  { width: 1280, scheme: 'light' },
  { width: 390, scheme: 'dark' },
];

describe.each(looks.slice(0, effort(2, 1)))('$width wide and $scheme', (look) => {
  let shop: Shop;
  let browser: Browser;
  let admin: AdminPage;

  beforeAll(async () => {
    await buildAdminPage();
    code.isBroken = true;
    [shop, browser] = await Promise.all([openShop(), launchBrowser()]);
    admin = await openPage(browser, shop.page(operator), look);
  });
  afterAll(async () => {
    await browser.close();
    await shop.close();
  });

  const reasons: string[] = [];

  async function act(button: Locator, reason: string, fill?: (dialog: Locator) => Promise<void>): Promise<string> {
    const outcome = await runInDialog(admin.page, button, reason, fill);
    reasons.push(reason);
    return outcome;
  }

  const named = (name: string) => admin.page.locator('main').getByRole('button', { name, exact: true }).first();

  test('by keyboard alone: open, find the held version, read why, and activate it with a reason', async () => {
    const own = await openPage(browser, shop.page(operator), look);
    const { page } = own;
    await page.getByRole('link', { name: 'carts@2' }).first().waitFor();
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to content');
    await page.keyboard.press('Enter');
    await tabTo(page, 'carts@2');
    await page.keyboard.press('Enter');
    await page.getByText('Held.').waitFor();
    await tabTo(page, 'Activate');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Not possible now.').waitFor();
    await own.check('dialog-refused');
    await tabTo(page, 'Also if clients lose fields that they use');
    await page.keyboard.press('Space');
    await dialog.getByText('Not possible now.').waitFor({ state: 'detached' });
    await tabTo(page, 'Reason');
    await page.keyboard.type('the clients were told');
    await tabTo(page, 'Activate');
    await own.check('dialog');
    await page.keyboard.press('Enter');
    await dialog.locator('.notice.good').waitFor();
    await page.waitForFunction(() => document.activeElement?.textContent === 'Close');
    await own.check('dialog-done');
    await page.keyboard.press('Enter');
    await page.getByText('active, answers clients').waitFor();
    // The focus is on the page, not lost with the button.
    expect(await page.evaluate(() => document.activeElement?.localName)).toBe('main');
    expect(own.complaints).toEqual([]);
    await own.close();
    reasons.push('the clients were told');
  });

  test('Escape closes a dialog and nothing is done; without a reason nothing is done either', async () => {
    await admin.go('#/versions/carts@1');
    await named('Pause').click();
    const dialog = admin.page.getByRole('dialog');
    await dialog.locator('.preview .summary').waitFor();
    await dialog.locator('button[type=submit]').click();
    expect(await dialog.getByLabel('Reason').evaluate((field) => field.matches(':invalid'))).toBe(true);
    await admin.page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused(admin.page)).toBe('Pause');
  });

  test('a version is rolled back, tried as a canary and by compared queries, and paused', async () => {
    await admin.go('#/versions/carts@2');
    expect(await act(named('Roll back'), 'back to the first')).toMatch(/carts@1/);
    await admin.page.getByText('Held.').waitFor();
    await act(named('Start canary'), 'a tenth', async (dialog) => {
      await dialog.getByLabel('Share of the clients').fill('10');
      await dialog.getByLabel('Also if clients lose').check();
    });
    await admin.go('#/versions/carts@2/rollout');
    await admin.page.getByText('10 %').first().waitFor();
    await act(named('End canary'), 'enough seen');
    await act(named('Compare live queries'), 'compare', async (dialog) => {
      await dialog.getByLabel('Compare one query in').fill('1');
    });
    await admin.page.getByText('Compares one query in 1 since').waitFor();
    await act(named('Stop comparison'), 'compared');
    await act(named('Pause'), 'maintenance');
    await admin.page.getByText('Paused by ada.').waitFor();
    await act(named('Resume'), 'maintenance is over');
    await admin.page.getByText('Paused by ada.').waitFor({ state: 'detached' });
  });

  test('a table is kept as a snapshot, restored and rebuilt', async () => {
    await admin.go('#/versions/carts@1/table');
    await act(named('Take snapshot'), 'before the rebuild');
    await act(named('Restore'), 'back to the snapshot');
    await act(named('Rebuild'), 'from the snapshot', async (dialog) => {
      await dialog.getByLabel('From').selectOption('snapshot');
    });
    await admin.go('#/versions/carts@1/history');
    await admin.page.getByRole('cell', { name: 'from the snapshot' }).first().waitFor();
    await admin.go('#/versions/carts@1/table');
    await act(named('Drop'), 'no longer needed');
    await admin.page.getByText('There is no snapshot of its table.').waitFor();
  });

  test('rows are compared with the log, and with those of another version', async () => {
    await admin.go('#/versions/carts@2/verify');
    await named('Verify').click();
    await admin.page.getByText('all are as the log says').waitFor();
    await named('Compare').click();
    await admin.page.getByText('Only in carts@1').waitFor();
  });

  test('dead letters are retried one by one, many, and all that match, or discarded and recalled', async () => {
    await admin.go('#/dead-letters?of=prices@1');
    const { page } = admin;
    await page
      .getByRole('button', { name: /ItemAdded/ })
      .first()
      .click();
    const letter = page.getByRole('dialog');
    await letter.getByText('Blocked behind it').waitFor();
    await letter.getByText('at ', { exact: false }).first().waitFor();
    await admin.check('dead-letter');
    expect(await act(letter.getByRole('button', { name: 'Retry this one' }), 'the code is the same')).not.toBe('');
    await page.getByLabel('Select all of this page').check();
    await act(page.getByRole('button', { name: /^Discard selected/ }), 'a negative price is no price');
    await page.getByText('No dead letter matches.').waitFor();
    await admin.go('#/versions/prices@1/table');
    await page.getByRole('cell', { name: 'a negative price is no price' }).waitFor();
    code.isBroken = false;
    await act(named('Recall discards'), 'it is one after all');
    await page.getByText('No event is discarded.').waitFor();
    await admin.go('#/dead-letters?view=groups&by=OF,ERROR');
    await page.getByText('The mail server refuses.').waitFor();
    await act(
      page.getByRole('row', { name: /mails/ }).getByRole('button', { name: 'Retry' }),
      'the mail server is back',
    );
    await admin.go('#/dead-letters?of=mails');
    await page.getByText('No dead letter matches.').waitFor();
  });

  test('a rebuild that does not take over is cancelled, or accepted', async () => {
    code.isBroken = true;
    await admin.go('#/versions/prices@1');
    await act(named('Rebuild'), 'with the broken code');
    await admin.page.getByText('The rebuilt table does not take over.').waitFor();
    await act(named('Cancel rebuild'), 'not with this code');
    await admin.page.getByText('The rebuilt table does not take over.').waitFor({ state: 'detached' });
    await act(named('Rebuild'), 'with the broken code again');
    await admin.page.getByText('The rebuilt table does not take over.').waitFor();
    await act(named('Accept rebuild'), 'the letter is known');
    await admin.page.getByText('The rebuilt table does not take over.').waitFor({ state: 'detached' });
    code.isBroken = false;
  });

  test('a reactor is paused, resumed, rewound and made to skip an event', async () => {
    await admin.go('#/reactors/mails');
    await act(named('Pause'), 'no mail today');
    await admin.page.getByText('paused', { exact: true }).first().waitFor();
    await act(named('Rewind'), 'mail again', async (dialog) => {
      await dialog.getByLabel('Position').fill('0');
    });
    await act(named('Resume'), 'mail is back');
    await admin.page.getByText('running', { exact: true }).first().waitFor();
  });

  test('a version is retired', async () => {
    await admin.go('#/versions/strict_prices@1');
    await act(named('Retire'), 'nobody needs it', async (dialog) => {
      await dialog.getByLabel('Keep the table for').fill('1');
      await overcome(dialog);
    });
    await admin.page.getByText('retired', { exact: true }).first().waitFor();
  });

  test('every action is in the audit log with the name of the token and its reason, also in the file', async () => {
    await admin.go('#/audit?actor=ada');
    const shown = new Set<string>();
    for (;;) {
      for (const text of await admin.page.locator('main tbody tr').allInnerTexts()) shown.add(text);
      const next = admin.page.getByRole('button', { name: 'Next' });
      if (!(await next.isVisible()) || (await next.isDisabled())) break;
      await next.click();
      await admin.page.locator('[aria-busy=false]').first().waitFor();
    }
    const missing = reasons.filter((reason) => ![...shown].some((text) => text.includes(reason)));
    expect(missing).toEqual([]);
    const [download] = await Promise.all([
      admin.page.waitForEvent('download'),
      admin.page.getByRole('button', { name: 'Download as CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('refold-audit.csv');
    expect(admin.complaints).toEqual([]);
  });

  test('a token that may only read is shown no action, no payload and no row', async () => {
    const own = await openPage(browser, shop.page(reader), look);
    for (const address of ['#/versions/carts@2', '#/versions/carts@1/table', '#/dead-letters', '#/reactors/mails']) {
      await own.go(address);
      expect(await own.page.locator('[data-action]').count(), address).toBe(0);
    }
    await own.go('#/log/1');
    await own.page.getByText('lacks the right DATA').waitFor();
    expect(await own.page.getByText('customer-of-c1').count()).toBe(0);
    await own.go('#/rows');
    await own.page.getByText('lacks the right DATA').waitFor();
    await own.go('#/versions/carts@2/verify');
    await own.page.getByText('lacks the right VERIFY').waitFor();
    expect(own.complaints).toEqual([]);
    await own.close();
  });
});

/** Checks what would overcome a refusal, if the action is refused. */
async function overcome(dialog: Locator): Promise<void> {
  if (await dialog.getByText('Not possible now.').isVisible()) await dialog.getByRole('checkbox').check();
}

/** The name of what has the focus: its label, or its text. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement;
    const label =
      element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement ? element.labels?.[0] : null;
    return (label ?? element)?.textContent?.trim() ?? '';
  });
}

/** Presses Tab until the focus is on it. Fails if it comes around to where it was. */
async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = [];
  while (passed.length < 200) {
    await page.keyboard.press('Tab');
    const now = await focused(page);
    if (now === name) return;
    passed.push(now);
  }
  throw new Error(`Tab does not lead to '${name}', but to ${passed.join(', ')}`);
}
