import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createLogger, createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly operation?: string;
  readonly type?: string;
  readonly outcome?: string;
  readonly position?: string;
  readonly events?: number;
}

let database: TestDatabase;
let refold: Refold;
let lines: Line[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1],
      commands: [openAccount, credit],
      database: { url: database.url },
      gateway: { port: 0, requestLog: true },
    }),
    {
      logger: createLogger({
        level: 'debug',
        projections: [balanceV1],
        destination: { write: (line) => void lines.push(JSON.parse(line)) },
      }),
    },
  );
});
beforeEach(() => {
  lines = [];
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

const logged = () => lines.filter(({ type, msg }) => type !== undefined || msg.startsWith('operation: '));

function send(query: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'graphql-client-name': 'web',
      'graphql-client-version': '7',
      ...headers,
    },
    body: JSON.stringify({ query }),
  });
}

test('each operation has a line, whoever answers it, with its name, client, outcome and position, and without values', async () => {
  const opened = await send('mutation Open { openAccount(input: { accountId: "a", owner: "Ada" }) { position } }');
  const { data } = (await opened.json()) as { data: { openAccount: { position: string } } };
  await send('query Compiled { balance(accountId: "a") { amount } }');
  await send('query Executed @after(position: "0") { balance(accountId: "a") { amount } }');
  await send('mutation Again { openAccount(input: { accountId: "a", owner: "Ada" }) { position } }');
  await send('{ unknown }');
  await send('{ ');
  expect(logged()).toMatchObject([
    {
      level: 'info',
      type: 'mutation',
      operation: 'Open',
      outcome: 'ok',
      client: 'web@7',
      position: data.openAccount.position,
      durationMs: expect.any(Number),
    },
    { type: 'query', operation: 'Compiled', outcome: 'ok', client: 'web@7' },
    { type: 'query', operation: 'Executed', outcome: 'ok' },
    { type: 'mutation', operation: 'Again', outcome: 'COMMAND_REJECTED' },
    { type: 'query', outcome: 'BAD_USER_INPUT' },
    { msg: expect.stringMatching(/^operation: /) },
  ]);
  expect(logged()[0]?.msg).toMatch(/^mutation Open: ok, [\d.]+ ms$/);
  expect(JSON.stringify(logged())).not.toContain('Ada');
});

test('a subscription has a line when it begins', async () => {
  const response = await send('subscription Watch { balance(accountId: "a") { amount } }', {
    accept: 'text/event-stream',
  });
  await until(() => logged().length > 0);
  expect(logged()).toMatchObject([{ type: 'subscription', operation: 'Watch', outcome: 'ok' }]);
  await response.body?.cancel();
});

test('the level debug adds a line for each command, append and batch', async () => {
  // Batches of what other tests have appended are logged by then.
  const horizon = await refold.log.horizon();
  await until(async () => (await refold.status()).every(({ position }) => position >= horizon));
  lines = [];
  await refold.execute(credit, { accountId: 'a', amount: '1' });
  const message = (text: string) => lines.findLast(({ msg }) => msg === text);
  await until(() => message('batch processed')?.events === 1);
  expect(message('command ended')).toMatchObject({ level: 'debug', command: 'credit', outcome: 'ok' });
  expect(message('1 events of 1 appends written')).toMatchObject({ outcomes: ['written'] });
  expect(message('batch processed')).toMatchObject({
    processor: 'balance@1',
    events: 1,
    durationMs: expect.any(Number),
  });
});
