/** A process answers by its own steps at once. Nothing notifies it here: the registry is read every few seconds, and after a step. */
import { expect, onTestFinished, test } from 'vitest';
import { cartSummaryV1 } from '../../examples/shopping-cart/cart-summary.v1.ts';
import { cartSummaryV2 } from '../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../examples/shopping-cart/customer-profile.v1.ts';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { usualTokens } from '../admin/admin-under-test.ts';
import * as patient from '../support/patient.ts';
import { createTestDatabase, useUsualSettings } from '../support/test-database.ts';

const step = { actor: 'test', reason: 'a test' };

/** A gateway with both versions active, and nothing that changes by itself. */
async function gateway(): Promise<Refold> {
  const database = await createTestDatabase();
  await useUsualSettings(database);
  onTestFinished(() => database.drop());
  const config = defineConfig({
    projections: [cartSummaryV1, cartSummaryV2, customerProfileV1],
    gateway: { port: 0, admin: { tokens: usualTokens } },
    database: { url: database.url, notifications: false },
    runtime: { ownership: 'lease' },
  });
  const worker = await createRefold(config, { role: 'worker', name: 'worker', migrate: true });
  onTestFinished(() => worker.stop());
  const refold = await createRefold(config, { role: 'gateway', name: 'gateway' });
  onTestFinished(() => refold.stop());
  await patient.untilActive(refold, 'cart_summary@1');
  await patient.untilActive(refold, 'cart_summary@2');
  return refold;
}

/** Version 1 has no status. The text of any other error is returned. */
async function answeringVersion(refold: Refold, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query: '{ cartSummary(cartId: "c1") { status } }' }),
  });
  const { errors } = (await response.json()) as { errors?: readonly { message: string }[] };
  if (errors === undefined) return 2;
  return errors[0]?.message.startsWith('Cannot query field "status"') ? 1 : errors[0]?.message;
}

test('a process answers by a step of its own when the step is done', async () => {
  const refold = await gateway();
  expect(await answeringVersion(refold)).toBe(2);
  await refold.lifecycle.rollback('cart_summary', step);
  expect(await answeringVersion(refold)).toBe(1);
  const chosen = { 'x-canary': 'yes' };
  await refold.lifecycle.startCanary('cart_summary', 2, { header: { name: 'x-canary', value: 'yes' } }, step);
  expect([await answeringVersion(refold), await answeringVersion(refold, chosen)]).toEqual([1, 2]);
  await refold.lifecycle.endCanary('cart_summary', step);
  expect(await answeringVersion(refold, chosen)).toBe(1);
  await refold.lifecycle.activate('cart_summary', 2, step);
  expect(await answeringVersion(refold)).toBe(2);
  const pinned = { 'refold-pin': 'cart_summary@1' };
  expect(await answeringVersion(refold, pinned)).toBe(1);
  await refold.lifecycle.retire('cart_summary', 1, step);
  expect(await answeringVersion(refold, pinned)).toBe("cart_summary@1 can't be pinned: it is retired.");
});

test('a process answers by an action of its admin API when the action is done', async () => {
  const refold = await gateway();
  const admin = async (query: string, variables: object) => {
    const response = await fetch(`${refold.url}/admin/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${usualTokens[0]?.token}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: Record<string, { digest: string }>; errors?: unknown };
    expect(errors).toBeUndefined();
    return data;
  };
  const run = async (action: object) => {
    const { preview } = await admin('query ($action: ActionInput!) { preview(action: $action) { digest } }', {
      action,
    });
    await admin(
      'mutation ($action: ActionInput!, $digest: String!) { run(action: $action, digest: $digest, reason: "a test") { summary } }',
      { action, digest: preview?.digest },
    );
  };
  await run({ rollback: { projection: 'cart_summary' } });
  expect(await answeringVersion(refold)).toBe(1);
  await run({ activate: { version: 'cart_summary@2' } });
  expect(await answeringVersion(refold)).toBe(2);
});
