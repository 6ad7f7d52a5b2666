import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { account, balanceV1, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1],
      commands: [openAccount],
      database: { url: database.url },
      gateway: { port: 0 },
    }),
    { name: 'tester' },
  );
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

const opened = { type: 'Opened', payload: { owner: 'Ada' } } as const;

async function scrape(): Promise<readonly string[]> {
  const response = await fetch(`${refold.url}/metrics`);
  return (await response.text()).split('\n');
}

test('appends are counted by outcome, and their statements are timed', async () => {
  const append = { family: account, streamId: 'a', events: [opened, opened] };
  await refold.log.append({ ...append, idempotencyKey: 'k' });
  await refold.log.append({ ...append, idempotencyKey: 'k' });
  await expect(refold.log.append({ ...append, expectedVersion: 0 })).rejects.toThrow();
  expect(await scrape()).toEqual(
    expect.arrayContaining([
      'refold_appends_total{outcome="written"} 1',
      'refold_appends_total{outcome="duplicate"} 1',
      'refold_appends_total{outcome="conflict"} 1',
      'refold_appended_events_total 2',
      'refold_append_seconds_count 3',
    ]),
  );
});

test('statements are counted by pool, and messages to subscribers', async () => {
  const read = async (metric: string) =>
    Number(
      (await scrape())
        .find((line) => line.startsWith(`${metric} `))
        ?.split(' ')
        .at(-1),
    );
  const before = await read('refold_sql_statements_total{pool="reads"}');
  await refold.graphql('{ balance(accountId: "none") { amount } }');
  expect(await read('refold_sql_statements_total{pool="reads"}')).toBeGreaterThan(before);
  expect(await read('refold_sql_statements_total{pool="work"}')).toBeGreaterThan(0);
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { balance(accountId: "none") { amount } }' }),
  });
  await response.body?.getReader().read();
  await until(async () => (await read('refold_subscription_messages_total')) === 1);
  expect(await read('refold_subscription_coalesced_total')).toBe(0);
});

test('commands are timed by name and outcome, and the events that they read are counted', async () => {
  const input = { accountId: 'b', owner: 'Ada' };
  await refold.execute(openAccount, input);
  await expect(refold.execute(openAccount, input)).rejects.toThrow('The account exists already.');
  await expect(refold.execute(openAccount, {})).rejects.toThrow();
  const counts = (await scrape()).filter((line) => line.startsWith('refold_command_seconds_count'));
  expect(counts).toEqual([
    'refold_command_seconds_count{command="openAccount",outcome="ok"} 1',
    'refold_command_seconds_count{command="openAccount",outcome="COMMAND_REJECTED"} 1',
    'refold_command_seconds_count{command="openAccount",outcome="BAD_USER_INPUT"} 1',
  ]);
  expect(await scrape()).toEqual(
    expect.arrayContaining([
      'refold_state_events_read_sum{family="account"} 1', // the second command read what the first one wrote
      'refold_state_events_read_count{family="account"} 2',
    ]),
  );
});

test('batches are timed by version, each version has its owner, and pools show their connections', async () => {
  await refold.log.append({ family: account, streamId: 'c', events: [opened] });
  const batches = /^refold_batch_seconds_count\{processor="balance@1"\} [1-9]/;
  const owner = 'refold_processor_owner{projection="balance",version="1",partition="0",owner="tester"} 1';
  await until(async () => {
    const lines = await scrape();
    return lines.some((line) => batches.test(line)) && lines.includes(owner);
  });
  const pools = (await scrape()).filter((line) => line.startsWith('refold_pool_'));
  for (const pool of ['work', 'reads']) {
    for (const state of ['busy', 'idle'])
      expect(pools).toContainEqual(
        expect.stringMatching(`^refold_pool_connections\\{pool="${pool}",state="${state}"\\} \\d+$`),
      );
    expect(pools).toContain(`refold_pool_waiting{pool="${pool}"} 0`);
  }
});
