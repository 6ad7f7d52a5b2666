import { afterAll, beforeAll, expect, test } from 'vitest';
import app from '../../examples/money-transfer/app.ts';
import { beginning, createRefold, type Refold } from '../../src/index.ts';
import { untilCaughtUp } from '../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let bank: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  bank = await createRefold({
    ...app,
    database: { ...app.database, url: database.url },
    gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
  });
});
afterAll(async () => {
  await bank.stop();
  await database.drop();
});

async function ask(source: string): Promise<Record<string, unknown>> {
  const { data, errors } = await bank.graphql(source);
  expect(errors).toBeUndefined();
  return JSON.parse(JSON.stringify(data));
}

async function ended(transferId: string): Promise<unknown> {
  return until(async () => {
    const { moneyTransfer } = await ask(`{ moneyTransfer(transferId: "${transferId}") { status reason } }`);
    const found = moneyTransfer as { status: string } | null; // as selected
    return found !== null && found.status !== 'Requested' && found;
  });
}

/** The accounts' balances when all written events are folded. */
async function balances(): Promise<unknown> {
  const after = await bank.log.head();
  return ask(
    `query @after(position: "${after}") { ada: accountBalance(accountId: "ada") { balance } bo: accountBalance(accountId: "bo") { balance } }`,
  );
}

test('money moves from one account to another, and a transfer that can’t arrive is refunded', async () => {
  await ask(`mutation {
    ada: openAccount(input: { accountId: "ada", owner: "Ada" }) { position }
    bo: openAccount(input: { accountId: "bo", owner: "Bo" }) { position }
    in: depositMoney(input: { accountId: "ada", amount: "100" }) { position }
  }`);
  const request = (transferId: string, from: string, to: string, amount: string) =>
    ask(
      `mutation { requestTransfer(input: { transferId: "${transferId}", from: "${from}", to: "${to}", amount: "${amount}" }) { position } }`,
    );
  await request('t1', 'ada', 'bo', '30.5');
  expect(await ended('t1')).toEqual({ status: 'Completed', reason: null });
  expect(await balances()).toEqual({ ada: { balance: '69.50' }, bo: { balance: '30.50' } });

  await request('t2', 'bo', 'ada', '31');
  expect(await ended('t2')).toEqual({ status: 'Failed', reason: "Account 'bo' holds too little." });
  await request('t3', 'ada', 'nobody', '20');
  expect(await ended('t3')).toEqual({ status: 'Failed', reason: "There is no account 'nobody'." });
  expect(await balances()).toEqual({ ada: { balance: '69.50' }, bo: { balance: '30.50' } });
});

test('a transfer and its consequences can be followed by its ids', async () => {
  const transferId = 't4';
  await ask(
    `mutation { requestTransfer(input: { transferId: "${transferId}", from: "ada", to: "bo", amount: "1" }) { position } }`,
  );
  await ended(transferId);
  const events = await bank.log.readAll({ after: beginning, upTo: await bank.log.horizon(), limit: 1000 });
  const request = events.events.find(({ type, streamId }) => type === 'TransferRequested' && streamId === transferId);
  const caused = events.events.filter(({ metadata }) => metadata.causationId === request?.id);
  expect(caused.map(({ type }) => type)).toEqual(['MoneyWithdrawn', 'MoneyDeposited', 'TransferCompleted']);
  expect(new Set(caused.map(({ metadata }) => metadata.correlationId))).toEqual(
    new Set([request?.metadata.correlationId ?? request?.id]),
  );
});

test('its metrics show the progress of the workflow', async () => {
  await untilCaughtUp(bank);
  const metrics = await (await fetch(`${bank.url}/metrics`)).text();
  expect(metrics).toContain('refold_reactor_events_handled_total{reactor="money_transfers"} 4\n');
  expect(metrics).toContain('refold_reactor_dead_letters{reactor="money_transfers"} 0\n');
});
