import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openOperation } from '../../src/cli/shared/open-operation.ts';
import {
  type Config,
  createRefold,
  defineConfig,
  globalPosition,
  type Projection,
  type Refold,
} from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { translateDatabaseError } from '../../src/store/postgres/database-errors.ts';
import { isoTimestamp } from '../../src/store/statements/column-parsers.ts';
import { seeded, traffic, underTraffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { account, balanceV1, balanceV2, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses } from '../support/worker-processes.ts';

const program = '/usr/sbin/pgbouncer';

let database: TestDatabase;
/** A direct connection, without the pooler. */
let db: Database;
let pooler: PgBouncer;
let url: string;
const workers = createWorkerProcesses();
const running = new Set<Refold>();
const random = seeded(20_260_131);
const pooled = { notifications: false, prepare: false } as const;
const leased = { ownership: 'lease', leaseSeconds: 3, polling: { min: 20, max: 100 } } as const;

beforeAll(async () => {
  if (!existsSync(program)) {
    throw new Error(
      `Expected PgBouncer at ${program}, but it is not there. Install it with: ` +
        'apt-get update && apt-get install --no-install-recommends pgbouncer',
    );
  }
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  // Default settings of the server's sessions must not affect a timestamp.
  const name = new URL(database.url).pathname.slice(1);
  await database.administer(`alter database ${name} set timezone = 'Asia/Kathmandu'`);
  await database.administer(`alter database ${name} set datestyle = 'German'`);
  pooler = await startPgBouncer(program, database.url);
  url = pooler.through(database.url);
});
afterEach(async () => {
  for (const refold of running) await refold.stop();
  running.clear();
  await workers.killAll();
});
afterAll(async () => {
  await pooler.stop();
  await db.close();
  await database.drop();
});

function config(projections: readonly Projection[]): Config {
  return defineConfig({
    projections,
    commands: [openAccount, credit],
    database: { url, maxConnections: 9, ...pooled },
    runtime: leased,
    gateway: { port: 0, positionTimeout: 300_000 },
    development: false,
  });
}

async function start(of: Config): Promise<Refold> {
  const refold = await createRefold(of);
  running.add(refold);
  return refold;
}

async function caughtUp(refold: Refold, ...projections: readonly Projection[]): Promise<void> {
  const horizon = await refold.log.horizon();
  await until(async () => {
    const status = await refold.status();
    return projections.every(({ name, version }) =>
      status.some(
        (one) => one.name === name && one.version === version && one.position >= horizon && one.state === 'active',
      ),
    );
  });
}

async function expectFolds(refold: Refold, ...projections: readonly Projection[]): Promise<void> {
  await caughtUp(refold, ...projections);
  for (const projection of projections) {
    expect(await storedTable(db, projection), projection.id).toEqual(await foldedTable(refold.log, projection));
  }
}

test('an application that does not declare its pooler is refused, with the setting to change', async () => {
  const untold = defineConfig({ projections: [balanceV1], database: { url }, gateway: { port: 0 } });
  const refused = {
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringMatching(
      /transactions of one connection ran in different sessions \(\d+, \d+\), .* Set database\.notifications to false and runtime\.ownership to 'lease'/,
    ),
  };
  await expect(createRefold(untold)).rejects.toMatchObject(refused);
  // The same for 'refold import' and all other commands that use the database.
  await expect(openOperation(untold)).rejects.toMatchObject(refused);
});

test('an application behind a pooler in transaction mode appends, reads its own writes and moves to a new version', async () => {
  const first = await start(config([balanceV1, openingsV1]));
  const opened = await first.graphql(
    'mutation { openAccount(input: { accountId: "a", owner: "Ada" }) { position balance { owner amount } } }',
  );
  expect(opened).toEqual({
    data: {
      openAccount: { position: expect.stringMatching(/^1\.[0-9a-f]{8}$/), balance: { owner: 'Ada', amount: '0.00' } },
    },
  });
  await traffic(first.log, 2_000, random);
  await expectFolds(first, balanceV1, openingsV1);
  running.delete(first);
  await first.stop();

  const second = await start(config([balanceV1, balanceV2, openingsV1]));
  await expectFolds(second, balanceV1, balanceV2, openingsV1);
  const credited = await until(async () => {
    const answer = await second.graphql(
      'mutation { credit(input: { accountId: "a", amount: "12.50" }) { balance { amount largest } } }',
    );
    return answer.errors === undefined && answer;
  });
  expect(credited.data).toMatchObject({ credit: { balance: { largest: '12.50' } } });
  await second.lifecycle.rollback('balance', { actor: 'ann', reason: 'a wrong figure' });
  const asked = '{ balances(first: 1, orderBy: [{ amount: DESC }]) { nodes { amount largest } } }';
  await until(async () => (await second.graphql(asked)).errors?.some(({ message }) => message.includes('largest')));
  await second.lifecycle.activate('balance', 2, { actor: 'ann', reason: 'it was right' });
  await until(async () => (await second.graphql(asked)).errors === undefined);
});

test('times are the same through the pooler, for any time zone and style of the server’s own sessions', async () => {
  const refold = await start(config([balanceV1, balanceV2, openingsV1]));
  const timed = { family: account, streamId: 'timed', idempotencyKey: 'once' } as const;
  const events = [{ type: 'Opened', payload: { owner: 'Tim' } }] as const;
  const { events: written } = await refold.log.append({ ...timed, events });
  const [{ at } = { at: '' }] = await db.query<{ at: string }>({
    text: `
      select to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
      from refold.events
      where stream_id = 'timed'`,
  });
  const recordedAt = isoTimestamp(`${at.replace('T', ' ').replace(/0+$/, '')}+00`);
  expect(written).toMatchObject([{ recordedAt }]);
  // Read back by a query, by a copy, and from the JSON of an earlier result.
  for await (const event of refold.log.readStream(account, 'timed')) expect(event).toMatchObject({ recordedAt });
  const upTo = await refold.log.horizon();
  const after = globalPosition((written[0]?.position ?? 0n) - 1n);
  const page = await refold.log.readAll({ after, upTo, filter: openingsV1.filter, limit: 1 });
  expect(page.events).toMatchObject([{ recordedAt }]);
  const again = await refold.log.append({ ...timed, events });
  expect(again).toMatchObject({ duplicate: true, events: [{ recordedAt }] });
});

test('a statement that runs too long is terminated, although no session setting can be used', async () => {
  const limited = createDatabase({ url, sessions: false, prepare: false, statementTimeoutMs: 100 });
  await expect(limited.query({ text: 'select pg_sleep(60)' })).rejects.toMatchObject({ fields: { sqlState: '57014' } });
  const unlimited = createDatabase({ url, sessions: false, prepare: false, maxConnections: 8 });
  const limits = await Promise.all(
    Array.from({ length: 8 }, () => unlimited.query({ text: 'show statement_timeout' })),
  );
  expect(limits).toEqual(limits.map(() => [{ statement_timeout: '0' }]));
  await limited.close();
  await unlimited.close();
});

test('when a worker is killed, another one behind the pooler takes over', async () => {
  const gateway = await createRefold(config([balanceV1, balanceV2, openingsV1]), { role: 'gateway' });
  running.add(gateway);
  const { log } = gateway;
  let owner = await workers.start({ url, owner: 'worker-0', runtime: leased, database: pooled });
  await underTraffic(
    log,
    random,
    async (head) => (await gateway.status()).every(({ position }) => head - position < 2_000n),
    async () => {
      for (let round = 1; round <= 2; round++) {
        await until(async () => (await gateway.status()).every((version) => version.owner === owner.owner));
        // It takes some of them over; the killed worker keeps the others.
        const next = await workers.start({ url, owner: `worker-${round}`, runtime: leased, database: pooled });
        await owner.end('SIGKILL');
        await until(async () => (await gateway.status()).every((version) => version.owner === next.owner));
        await caughtUp(gateway, balanceV1, openingsV1);
        owner = next;
      }
    },
  );
  await expectFolds(gateway, balanceV1, balanceV2, openingsV1);
  await owner.end('SIGTERM');
});

test('more connections than the pooler admits wait for each other, and this is not reported as an outage', async () => {
  const small = await startPgBouncer(program, database.url, { maxClients: 3 });
  const crowded = createDatabase({ url: small.through(database.url), maxConnections: 10 });
  try {
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const rows = await Promise.all(
      numbers.map((n) => crowded.query({ text: 'select $1::int as n from pg_sleep(0.01)', values: [n] })),
    );
    expect(rows).toEqual(numbers.map((n) => [{ n }]));
    const refusal = Object.assign(new Error('no more connections allowed (max_client_conn)'), { code: '08P01' });
    expect(translateDatabaseError(refusal, database.url)).toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringContaining('the pooler has no connection left'),
    });
  } finally {
    await crowded.close();
    await small.stop();
  }
});
