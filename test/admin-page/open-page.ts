import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { examine } from '../support/browser.ts';

export interface Look {
  readonly width: 1280 | 390 | 360;
  readonly scheme: 'light' | 'dark';
}

/** A page of the admin page with what went wrong in it. */
export interface AdminPage {
  readonly page: Page;
  /** Goes to an address such as `#/log`, and waits until it is shown. */
  go(address: string): Promise<void>;
  /** Keeps a picture, for a person to look at. Fails if axe finds something serious, or if the page is wider than the window. */
  check(name: string): Promise<void>;
  /** What the browser complained of: errors of the program, and what the policy of the page refused. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

// Ignored by git. CI keeps it.
const pictures = join(import.meta.dirname, '../../.refold/screenshots');

export async function openPage(browser: Browser, address: string, look: Look): Promise<AdminPage> {
  const height = look.width === 1280 ? 860 : 780;
  const context: BrowserContext = await browser.newContext({
    viewport: { width: look.width, height },
    colorScheme: look.scheme,
    reducedMotion: 'reduce',
  });
  // A wait ends when its condition holds; the test's own timeout is the limit.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(address);
  await page.locator('h1').waitFor();
  return {
    page,
    complaints,
    async go(place) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, place);
      await page.waitForFunction(() => document.querySelector('h1') && !document.body.innerText.includes('Loading …'));
    },
    async check(name) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}-${look.width}-${look.scheme}.png`), fullPage: true });
      const serious = (await examine(page)).filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(serious, name).toEqual([]);
      const surplus = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(surplus, `${name} is wider than the window, in pixels`).toBeLessThanOrEqual(0);
    },
    close: () => context.close(),
  };
}

/** Runs an action in its dialog: waits for the preview, answers its questions, gives a reason, and returns what was done. */
export async function runInDialog(
  page: Page,
  button: Locator,
  reason: string,
  fill?: (dialog: Locator) => Promise<void>,
): Promise<string> {
  await button.click();
  const dialog = page.getByRole('dialog').last();
  await dialog.locator('.preview .summary').waitFor();
  await fill?.(dialog);
  await dialog.getByLabel('Reason').fill(reason);
  await dialog.locator('button[type=submit]:enabled').click();
  const close = dialog.locator('footer').getByRole('button', { name: 'Close' });
  await close.waitFor();
  await dialog.locator('footer button:enabled', { hasText: 'Close' }).waitFor();
  const outcome = await dialog.getByRole('status').innerText();
  await close.click();
  await dialog.waitFor({ state: 'detached' });
  return outcome;
}
