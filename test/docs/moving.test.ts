import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { Shell } from '../support/shell.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { type TutorialBlock, tutorialSteps } from './tutorial-page.ts';
import { TutorialReader } from './tutorial-reader.ts';

const steps = tutorialSteps(readFileSync('docs/moving-read-models.md', 'utf8'));

let database: TestDatabase;
let server: PostgresCluster;
let shell: Shell;
let reader: TutorialReader;
let failed: string | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startOwnServer();
  shell = new Shell({
    cwd: resolve('.'),
    env: { DATABASE_URL: database.url, ANALYTICS_URL: server.url, PORT: '0', HOST: '127.0.0.1', LOG_LEVEL: 'warn' },
  });
  reader = new TutorialReader(shell, []);
});
afterAll(async () => {
  await traffic.stop();
  await shell.close();
  await server.stop();
  await database.drop();
});

/** Clients that write, read what they wrote, and read what others wrote. A load balancer sends them to the process that started last. */
const traffic = (() => {
  let url: string | undefined;
  let running: Promise<void> | undefined;
  let working = true;
  let count = 0;

  async function ask(query: string): Promise<Record<string, never>> {
    const response = await fetch(`${url}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    const { data, errors } = (await response.json()) as { data: Record<string, never>; errors?: unknown };
    expect(errors, query).toBe(undefined);
    return data;
  }

  async function client(): Promise<void> {
    for (let own = 1; working; own++) {
      const input = `{ customerId: "c${own}", profile: { name: "n${own}", email: "n${own}@example.com" } }`;
      const written = await ask(`mutation { registerCustomer(input: ${input}) { customerProfile { name } } }`);
      expect(written).toEqual({ registerCustomer: { customerProfile: { name: `n${own}` } } });
      // Of three read models, in one snapshot.
      const read = await ask(
        '{ customerProfiles(first: 1) { totalCount } cartSummaries(first: 1) { nodes { cartId } } }',
      );
      expect(read.customerProfiles).toMatchObject({ totalCount: expect.any(Number) });
      count = own;
    }
  }

  return {
    get count() {
      return count;
    },
    sendTo(next: string): void {
      url = next;
      running ??= client();
      running.catch(() => {}); // `stop` reports it
    },
    async stop(): Promise<void> {
      working = false;
      await running;
    },
  };
})();

async function execute(block: TutorialBlock): Promise<void> {
  await reader.execute(block);
  const [url] = /http:\/\/127\.0\.0\.1:\d+\/graphql/.exec(reader.lastOutput) ?? [];
  if (url) traffic.sendTo(url);
}

test('the page has the whole of a move', () => {
  expect(steps.map(({ title }) => title)).toHaveLength(6);
});

// Each step continues where the one before it ended.
describe('docs/moving-read-models.md shows what its commands print, while clients write and read:', () => {
  test.each(steps)('$title', async ({ title, blocks }) => {
    expect(failed, 'an earlier step failed').toBe(undefined);
    onTestFailed(() => {
      failed ??= title;
      console.info(`The last output was:\n${reader.lastOutput}`);
    });
    const isLast = title === steps.at(-1)?.title;
    for (const block of isLast ? blocks.slice(0, -1) : blocks) await execute(block);
    if (!isLast) return;
    // The last block stops the application.
    await traffic.stop();
    expect(traffic.count).toBeGreaterThan(20);
    for (const block of blocks.slice(-1)) await execute(block);
  }, 300_000); // many programs start one after another, on a machine that may be busy
});
