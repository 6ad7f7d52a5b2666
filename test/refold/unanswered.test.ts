import { createClient as createStreamClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let refold: Refold;
let blocker: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [balanceV1],
    commands: [openAccount, credit],
    database: { url: database.url, appendLockTimeout: 3_600_000 }, // only the test ends the wait
    gateway: { port: 0 },
  });
  refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  blocker = new pg.Client({ connectionString: database.url });
  await blocker.connect();
});
afterAll(async () => {
  await blocker?.end();
  await refold?.stop();
  await database?.drop();
});

test('a mutation over a WebSocket or a single connection that outlasts the end of the process gets OUTCOME_UNKNOWN before it is closed', async () => {
  await refold.graphql('mutation { openAccount(input: { accountId: "a", owner: "ada" }) { streamVersion } }');
  await blocker.query(`begin; select from refold.streams for update`);
  const query = 'mutation { credit(input: { accountId: "a", amount: "1" }) { streamVersion } }';

  const closed = Promise.withResolvers<unknown>();
  const socket = createSocketClient({
    url: `${refold.url?.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    lazy: true,
    retryAttempts: 0,
    on: { closed: (event) => closed.resolve(event) },
  });
  const overSocket = socket.iterate({ query });
  const toldOverSocket = overSocket.next();
  const isHeldUp = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until(async () => (await blocker.query(isHeldUp)).rowCount === 1);

  const accepted = Promise.withResolvers<void>();
  const stream = createStreamClient({
    url: `${refold.url}/graphql/stream`,
    singleConnection: true,
    retryAttempts: 0,
    async fetchFn(url: string, init: RequestInit) {
      const response = await fetch(url, init);
      if (response.status === 202) accepted.resolve();
      return response;
    },
  });
  const overStream = stream.iterate({ query });
  const toldOverStream = overStream.next();
  await accepted.promise;

  const stopped = refold.stop();
  const unknown = { value: { errors: [{ extensions: { code: 'OUTCOME_UNKNOWN' } }] } };
  expect(await toldOverSocket).toMatchObject(unknown);
  expect(await toldOverStream).toMatchObject(unknown);
  // The operation is complete: a client that reconnects does not send it again by itself.
  expect([await overSocket.next(), await overStream.next()]).toMatchObject([{ done: true }, { done: true }]);
  expect(await closed.promise).toMatchObject({ code: 1001 });
  await blocker.query('rollback');
  await stopped;
});
