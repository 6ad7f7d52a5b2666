import { createClient } from 'graphql-sse';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createRefold, defineConfig } from '../../../src/index.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const step = { actor: 'test', reason: 'test' };

test('a pinned version answers queries and subscriptions through activations, until it is retired', async () => {
  const database = await createTestDatabase();
  const config = defineConfig({
    projections: [balanceV1, { ...balanceV2, activation: { ...balanceV2.activation, by: 'manual' } }],
    database: { url: database.url },
    gateway: { port: 0 },
  });
  const refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  onTestFinished(async () => {
    await refold.stop();
    await database.drop();
  });
  const credit = async (amount: string) => {
    const events = [{ type: 'Credited', payload: { amount } }] as const;
    const { position } = await refold.log.append({ family: account, streamId: 'a', events });
    await until(async () =>
      (await refold.status()).every((status) => status.state === 'retired' || status.position >= position),
    );
  };
  const ask = async (query: string, pin?: string) => {
    const response = await fetch(`${refold.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(pin ? { 'refold-pin': pin } : {}) },
      body: JSON.stringify({ query }),
    });
    return { answer: await response.json(), headers: response.headers };
  };
  await refold.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await credit('5');
  const isActive = async (version: number) =>
    (await refold.status()).some((status) => status.version === version && status.state === 'active');
  await until(() => isActive(1));

  // A version that is ready but not active yet can be tried before it serves everyone.
  const largest = '{ balance(accountId: "a") { largest } }';
  if (await isActive(2)) await refold.lifecycle.rollback('balance', step);
  await until(async () => (await ask(largest, 'balance@2')).answer.data?.balance?.largest === '5.00');
  expect((await ask(largest)).answer.errors[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');

  const client = createClient({
    url: `${refold.url}/graphql`,
    retryAttempts: 0,
    headers: { 'refold-pin': 'balance@1' },
  });
  onTestFinished(() => client.dispose());
  const updates = client.iterate({ query: 'subscription { balance(accountId: "a") { amount movements } }' });
  const next = async () => (await updates.next()).value as unknown;
  expect(await next()).toEqual({ data: { balance: { amount: '5.00', movements: 1 } } });
  await refold.lifecycle.activate('balance', 2, step);
  await until(async () => (await ask(largest)).answer.data !== undefined);
  const pinned = await ask('{ balance(accountId: "a") { amount } }', 'balance@1');
  expect(pinned.answer).toEqual({ data: { balance: { amount: '5.00' } } });
  expect(Number(pinned.headers.get('deprecation')?.slice(1)) * 1000).toBeGreaterThan(Date.now() - 600_000);
  await credit('7');
  expect(await next()).toEqual({ data: { balance: { amount: '12.00', movements: 2 } } });

  await refold.lifecycle.retire('balance', 1, step);
  expect(await next()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  await until(async () => (await ask('{ __typename }', 'balance@1')).answer.errors !== undefined);
  expect((await ask('{ __typename }', 'balance@1')).answer.errors[0].message).toBe(
    "balance@1 can't be pinned: it is retired.",
  );
});
