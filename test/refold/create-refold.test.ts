import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  type ConfigOptions,
  createRefold,
  defineConfig,
  defineProjection,
  type Projection,
  type Refold,
  type RefoldOptions,
  t,
} from '../../src/index.ts';
import { account, balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
const running = new Set<Refold>();

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const refold of running) await refold.stop();
  running.clear();
  await database.drop(); // fails if a connection was left open
});

async function start(given: ConfigOptions = {}, options: RefoldOptions = {}): Promise<Refold> {
  const config = defineConfig({
    projections: [balanceV1, openingsV1],
    commands: [openAccount, credit],
    ...given,
    database: { url: database.url, ...given.database },
    gateway: { port: 0, positionTimeout: 300_000, ...given.gateway },
  });
  const refold = await createRefold(config, { logger: pino({ level: 'silent' }), ...options });
  running.add(refold);
  return refold;
}

/** As a client does, over HTTP. */
async function ask(refold: Refold, query: string): Promise<unknown> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

describe('invalid input is refused, and nothing of it is written', () => {
  test('a payload that its schema refuses', async () => {
    const { log } = await start();
    const events = [
      { type: 'Opened', payload: { owner: 'Ada' } },
      { type: 'Credited', payload: { amount: 5 as unknown as string } },
    ] as const;
    await expect(log.append({ family: account, streamId: 'a', events })).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      message:
        "The payload of account's 'Credited' is not valid: amount: Invalid input: expected string, received number",
      issues: [{ path: ['amount'] }],
    });
    const unknown = [{ type: 'Opend', payload: {} } as never];
    await expect(log.append({ family: account, streamId: 'a', events: unknown })).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT_TYPE',
      message: expect.stringContaining("Did you mean 'Opened'?"),
    });
    expect(await log.head()).toBe(0n);
  });

  test('a command that expects another version of the stream', async () => {
    const refold = await start();
    const open = 'openAccount(input: { accountId: "a", owner: "Ada" }, expectedVersion: 0) { streamVersion }';
    expect(await ask(refold, `mutation { ${open} }`)).toEqual({ data: { openAccount: { streamVersion: 1 } } });
    const late = 'mutation { credit(input: { accountId: "a", amount: "5" }, expectedVersion: 7) { position } }';
    expect(await ask(refold, late)).toMatchObject({
      data: { credit: null },
      errors: [
        {
          message:
            "Stream 'a' of account: expected version 7, found version 1. Read the stream again and decide again.",
          path: ['credit'],
          extensions: { code: 'CONCURRENCY_CONFLICT', expected: 7, actual: 1 },
        },
      ],
    });
    expect(await refold.log.streamVersion(account, 'a')).toBe(1);
  });

  test('an input that is not valid, and a command that is rejected', async () => {
    const refold = await start();
    const codes = async (mutation: string) => {
      const { errors } = (await ask(refold, `mutation { ${mutation} { position } }`)) as {
        errors: { extensions: { code: string } }[];
      };
      return errors.map(({ extensions }) => extensions.code);
    };
    expect(await codes('credit(input: { accountId: "a", amount: "five" })')).toEqual(['BAD_USER_INPUT']);
    expect(await codes('credit(input: { accountId: "a", amount: "5" })')).toEqual(['COMMAND_REJECTED']);
    expect(await refold.log.head()).toBe(0n);
  });

  test('a row with an unknown column stops its projection, and no other', async () => {
    const evolve = { Opened: () => ({ opened: 1, openend: 2 }) as { opened: number } };
    const wrong: Projection = defineProjection({
      name: 'wrong',
      version: 1,
      events: account,
      table: { accountId: t.text().primaryKey(), opened: t.integer() },
      key: (event) => event.streamId,
      evolve,
    });
    const refold = await start({ projections: [wrong, balanceV1] });
    const { position } = await refold.execute(openAccount, { accountId: 'a', owner: 'Ada' });
    const [balance, stopped] = await until(async () => {
      const versions = await refold.status();
      const folded = versions.some((one) => one.name === 'balance' && one.position >= position);
      return folded && versions.some(({ processor }) => processor === 'stopped') && versions;
    });
    expect(stopped).toMatchObject({
      name: 'wrong',
      processor: 'stopped',
      position: 0n,
      error: { message: expect.stringMatching(/^wrong@1: evolve of 'Opened' failed at position 1 .*'openend'/) },
    });
    expect(balance).toMatchObject({ name: 'balance', processor: 'running' });
    expect(await ask(refold, `query @after(position: "${position}") { balance(accountId: "a") { owner } }`)).toEqual({
      data: { balance: { owner: 'Ada' } },
    });
    expect(
      await ask(refold, `query @after(position: "${position}") { wrong(accountId: "a") { opened } }`),
    ).toMatchObject({ errors: [{ extensions: { code: 'POSITION_TIMEOUT', reached: '0' } }] });
  });
});

describe('a start that fails', () => {
  test('leaves nothing running: the next start owns everything at once', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo; // listens on a port
    await expect(start({ gateway: { port } })).rejects.toMatchObject({ code: 'PORT_IN_USE', fields: { port } });
    const refold = await start();
    const opened = 'openAccount(input: { accountId: "a", owner: "Ada" }) { balance { owner } }';
    await until(async () => (await refold.status()).every(({ processor }) => processor === 'running'));
    expect(await ask(refold, `mutation { ${opened} }`)).toEqual({
      data: { openAccount: { balance: { owner: 'Ada' } } },
    });
  });

  test('names an unreachable server, without its password', async () => {
    const url = 'postgres://refold:secret@127.0.0.1:1/shop';
    const failed = await start({ database: { url } }, { migrate: true }).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message:
        'PostgreSQL at 127.0.0.1:1/shop: nothing listens there. Start the server, or correct host and port in its URL: DATABASE_URL, or that of a read store.',
    });
  });
});

test('stopping twice is allowed, and a stopped application says that it has stopped', async () => {
  const refold = await start();
  await Promise.all([refold.stop(), refold.stop()]);
  await refold.stop();
  await expect(fetch(`${refold.url}/graphql?query={__typename}`)).rejects.toThrow();
  await expect(refold.status()).rejects.toThrow();
});

test('a worker has no gateway, and a query to it says so', async () => {
  const refold = await start({}, { role: 'worker' });
  expect(refold.url).toBeUndefined();
  await expect(refold.graphql('{ __typename }')).rejects.toThrow("this process was started with role 'worker'");
});
