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

test('a mutation that outlasts the end of the process gets OUTCOME_UNKNOWN before the connection is closed, a query that nothing was done', async () => {
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
  const heldUp = (pool: string, statements: number) => {
    const waiting = `select from pg_stat_activity where datname = current_database() and application_name = '${pool}' and wait_event_type = 'Lock'`;
    return until(async () => Number((await blocker.query(waiting)).rowCount) >= statements);
  };
  await heldUp('refold', 1);
  await blocker.query('lock table read_models.balance_v1');
  const read = '{ balances(first: 1) { nodes { accountId } } }';
  const queryOverPost = fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: read }),
  }).then((response) => response.json());
  await heldUp('refold-reads', 1);

  let accepted = 0;
  const stream = createStreamClient({
    url: `${refold.url}/graphql/stream`,
    singleConnection: true,
    retryAttempts: 0,
    async fetchFn(url: string, init: RequestInit) {
      const response = await fetch(url, init);
      if (response.status === 202) accepted++;
      return response;
    },
  });
  const overStream = stream.iterate({ query });
  const toldOverStream = overStream.next();
  await until(() => accepted === 1);
  const queryOverStream = stream.iterate({ query: read }).next();
  await until(() => accepted === 2);

  const stopped = refold.stop();
  const unknown = { value: { errors: [{ extensions: { code: 'OUTCOME_UNKNOWN' } }] } };
  expect(await toldOverSocket).toMatchObject(unknown);
  expect(await toldOverStream).toMatchObject(unknown);
  const refused = { errors: [{ extensions: { code: 'RATE_LIMITED' } }] };
  expect(await queryOverPost).toMatchObject(refused);
  expect(await queryOverStream).toMatchObject({ value: refused });
  // The operation is complete: a client that reconnects does not send it again by itself.
  expect([await overSocket.next(), await overStream.next()]).toMatchObject([{ done: true }, { done: true }]);
  expect(await closed.promise).toMatchObject({ code: 1001 });
  await blocker.query('rollback');
  await stopped;
});
