import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../../src/index.ts';
import { connectionLimitWarnings } from '../../../src/runtime/ownership/connection-limit.ts';
import { readLiveProcesses } from '../../../src/store/ownership/live-processes.ts';
import { announceProcess } from '../../../src/store/ownership/processes.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readAdmittedConnections } from '../../../src/store/server/server-facts.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { account, balanceV1, openAccount } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let db: Database;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 1 });
});
afterAll(async () => {
  await refold?.stop();
  await db.close();
  await database.drop();
});

const declared = { projections: [inlineBalance, balanceV1], events: [account], commands: [openAccount] };

test('a process opens no more connections in total than its limit, under any load', async () => {
  const maxConnections = 9;
  refold = await createRefold(
    defineConfig({
      ...declared,
      database: { url: database.url, maxConnections },
      gateway: { port: 0, positionTimeout: 300_000 },
    }),
  );
  // Beside them, a process may ask with one more connection why the server has not answered for five seconds.
  const opened = async () => {
    const rows = await db.query<{ name: string }>({
      text: `
        select application_name as name
        from pg_stat_activity
        where datname = current_database() and starts_with(application_name, 'refold')
          and application_name <> 'refold-migrate' and application_name not like '%-probe'`,
    });
    return rows.map(({ name }) => name);
  };
  let going = true;
  const load = Promise.all([
    traffic(refold.log, 600, seeded(3)),
    ...Array.from({ length: 24 }, async (_, caller) => {
      for (let n = 0; going; n++) {
        await refold.graphql(
          'mutation ($id: ID!) { openAccount(input: { accountId: $id, owner: "Ada" }) { balance { owner } } }',
          {
            id: `of-${caller}-${n}`,
          },
        );
        await refold.graphql('{ balances(first: 5) { totalCount } inlineBalances(first: 5) { totalCount } }');
      }
    }),
  ]);
  const kinds = new Set<string>();
  await until(async () => {
    const names = await opened();
    for (const name of names) kinds.add(name);
    return names.length >= maxConnections;
  });
  // A connection that has ended is listed for a moment; one beyond the limit would stay, because all are busy.
  for (let look = 0; look < 20; look++) await until(async () => (await opened()).length <= maxConnections);
  going = false;
  await load;
  expect([...kinds].sort()).toEqual(['refold', 'refold-append', 'refold-listen', 'refold-owner', 'refold-reads']);
});

test('a limit below what a process needs is refused, and the error says what the connections are for', () => {
  expect(() => defineConfig({ ...declared, database: { maxConnections: 7 } })).toThrow(
    'database.maxConnections is 7; this application needs 8 in a process: 2 for batches, 2 for reads, 2 for appends that inline projections fold, 1 for ownership, 1 for notifications.',
  );
  const pooled = { notifications: false } as const;
  expect(() =>
    defineConfig({
      projections: [balanceV1],
      database: { ...pooled, maxConnections: 4 },
      runtime: { ownership: 'lease' },
    }),
  ).toThrow(
    'database.maxConnections is 4; this application needs 5 in a process: 2 for batches, 2 for reads, 1 for ownership.',
  );
});

test('a warning is logged if all live processes together may need more connections than the server has', async () => {
  const admitted = await readAdmittedConnections(db);
  await announceProcess(db, {
    id: randomUUID(),
    name: 'another',
    role: 'gateway',
    versions: [],
    payloadVersions: {},
    reactorVersions: {},
    declares: [],
    owns: [],
    keeps: [],
  });
  const others = (await readLiveProcesses(db)).length;
  const share = Math.floor(admitted / (others + 1));
  expect(await connectionLimitWarnings(db, { maxConnections: share, notifications: true })).toEqual([]);
  expect(await connectionLimitWarnings(db, { maxConnections: share + 2, notifications: false })).toEqual([]);
  expect(await connectionLimitWarnings(db, { maxConnections: share + 2, notifications: true })).toEqual([
    `The server admits ${admitted} connections, and this process and ${others} that live already may open ${(others + 1) * (share + 2)} (database.maxConnections is ${share + 2}). When none is left, statements wait. Lower maxConnections to ${share} at most, raise the server's max_connections, or use a pooler.`,
  ]);
});
