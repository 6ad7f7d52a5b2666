import { afterAll, beforeAll, expect, test } from 'vitest';
import { cartSummaryV1 } from '../../examples/shopping-cart/cart-summary.v1.ts';
import { cartSummaryV2 } from '../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../examples/shopping-cart/customer-profile.v1.ts';
import { shoppingCart } from '../../examples/shopping-cart/events.ts';
import { createRefold, defineConfig, defineProjection, type Refold, t } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { untilActive, untilAnswer, untilCaughtUp, untilPosition } from '../../src/testing.ts';
import * as patient from '../support/patient.ts';
import { createTestDatabase, type TestDatabase, useUsualSettings } from '../support/test-database.ts';

const opened = defineProjection({
  name: 'opened_cart',
  version: 1,
  mode: 'inline',
  events: shoppingCart,
  table: { cartId: t.text().primaryKey(), customerId: t.text() },
  key: (event) => event.streamId,
  evolve: { ShoppingCartOpened: (_, { payload }) => ({ customerId: payload.customerId }) },
});

let database: TestDatabase;
let refold: Refold;
beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [cartSummaryV1, cartSummaryV2, customerProfileV1, opened],
    gateway: { port: 0 },
    database: { url: database.url },
  });
  refold = await createRefold(config);
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

const question = '{ cartSummary(cartId: "c1") { status } }';

test('a test waits for positions, versions and responses', async () => {
  const { position } = await refold.log.append({
    family: shoppingCart,
    streamId: 'c1',
    events: [{ type: 'ShoppingCartOpened', payload: { customerId: 'ada', openedAt: '2026-01-31T12:00:00.000Z' } }],
  });
  await patient.untilPosition(refold, position);
  await patient.untilCaughtUp(refold);
  for (const { position: reached } of await refold.status()) expect(reached).toBeGreaterThanOrEqual(position);
  await patient.untilActive(refold, 'cart_summary@2');
  await patient.untilAnswer(refold, question, { cartSummary: { status: 'Opened' } });
});

test('a process answers with the version that its status reports as active, even without notifications', async () => {
  const own = await createTestDatabase();
  await useUsualSettings(own);
  const config = defineConfig({
    projections: [cartSummaryV1, cartSummaryV2, customerProfileV1],
    gateway: { port: 0 },
    database: { url: own.url, notifications: false },
    runtime: { ownership: 'lease' },
  });
  const gateway = await createRefold(config, { role: 'gateway', migrate: true });
  const worker = await createRefold(config, { role: 'worker', name: 'worker' });
  const step = { actor: 'test', reason: 'a test' };
  const answers = async () => (await gateway.graphql(question)).errors === undefined;
  try {
    await patient.untilActive(gateway, 'cart_summary@2');
    expect(await answers()).toBe(true);
    await worker.lifecycle.rollback('cart_summary', step); // version 1 has no status
    await patient.untilActive(gateway, 'cart_summary@1');
    expect(await answers()).toBe(false);
    await worker.lifecycle.activate('cart_summary', 2, step);
    await patient.untilActive(gateway, 'cart_summary@2');
    expect(await answers()).toBe(true);
  } finally {
    await gateway.stop();
    await worker.stop();
    await own.drop();
  }
});

test('a test that relies on inline rows waits until they commit with appends', async () => {
  await patient.untilCaughtUp(refold);
  const of = async () => (await refold.status()).find(({ name }) => name === 'opened_cart')?.inline;
  expect(await of()).toBe('live');
  const db = createDatabase({ url: database.url });
  // The state after a writer that can't fold has left: it may not join again for a while.
  await db.transaction(async (tx) => {
    await tx.query({ text: `select refold.announce_leave('opened_cart', 1, true)` });
    await tx.query({ text: `select refold.settle_inline('opened_cart', 1)` });
    await tx.query({ text: `update refold.inline_versions set passed_at = now() + interval '1 hour'` });
  });
  await expect(untilCaughtUp(refold, { timeout: 0 })).rejects.toThrow('opened_cart@1 is active (inline: building) at');
  await db.query({ text: 'update refold.inline_versions set passed_at = null' });
  await db.close();
  await patient.untilCaughtUp(refold);
  expect(await of()).toBe('live');
});

test('the error of a time-out names what is missing', async () => {
  const options = { timeout: 0 };
  await expect(untilActive(refold, 'cart_summary@3', options)).rejects.toThrow(
    "There is no version 'cart_summary@3'. There are: cart_summary@1, cart_summary@2, customer_profile@1, opened_cart@1.",
  );
  await expect(untilAnswer(refold, question, { cartSummary: null }, options)).rejects.toThrow(/Waited[\s\S]*'Opened'/);
  await refold.lifecycle.rollback('cart_summary', { actor: 'test', reason: 'a test' });
  await expect(untilActive(refold, 'cart_summary@2', options)).rejects.toThrow(
    /Waited 0 ms. Expected cart_summary@2 to be active, but it is ready at position \d+, held: /,
  );
  const beyond = ((await refold.log.head()) + 5n) as Awaited<ReturnType<Refold['log']['head']>>; // a position beyond the log
  await expect(untilPosition(refold, beyond, options)).rejects.toThrow(
    /Expected every version .*cart_summary@1 is active at/,
  );
  await expect(untilAnswer(refold, '{ nothing }', {}, options)).rejects.toThrow(/Cannot query field/);
  await expect(untilCaughtUp(refold, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
});
