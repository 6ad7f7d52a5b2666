import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { inStore } from '../support/store-setting.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin } from './admin-under-test.ts';
import { fillOperated, operated } from './operated-application.ts';

const projections = operated.projections.map((one) => (one.id === 'strict@1' ? inStore(one) : one));

let server: PostgresCluster;
let network: TcpProxy;
let admin: AdminUnderTest;

beforeAll(async () => {
  server = await startOwnServer();
  network = await startTcpProxy(Number(new URL(server.url).port));
  const readStores = { analytics: { url: network.through(server.url) } };
  admin = await startAdmin(
    // The process itself notices nothing: statements wait for an hour.
    { ...operated, projections, readStores, database: { answerTimeout: 3_600_000 } },
    fillOperated,
  );
});
afterAll(async () => {
  network.resume();
  await admin.close();
  await network.close();
  await server.stop();
});

const overview = async () =>
  await admin.data(`{
    overview { versionCount stores { name isAway lastKnown { at versions { id state position } } } }
    versions { storesAway items { id } }
  }`);

test('the overview does not wait for a store that has fallen silent, and tells what it last had', async () => {
  const before = await overview();
  expect(before.overview.stores).toMatchObject([
    { name: 'default', isAway: false, lastKnown: null },
    { name: 'analytics', isAway: false, lastKnown: null },
  ]);
  expect(before.versions.items.map(({ id }: { id: string }) => id)).toContain('strict@1');
  network.swallow();
  const shown = await until(async () => {
    const found = await overview();
    return found.versions.storesAway.length > 0 && found;
  });
  expect(shown.overview.versionCount).toBe(before.overview.versionCount - 1);
  expect(shown.overview.stores).toEqual([
    { name: 'default', isAway: false, lastKnown: null },
    {
      name: 'analytics',
      isAway: true,
      lastKnown: { at: expect.any(String), versions: [{ id: 'strict@1', state: 'ACTIVE', position: '6' }] },
    },
  ]);
  network.resume();
  await until(async () => (await overview()).versions.storesAway.length === 0);
});

test('a store that is slow is not taken for one that is silent', async () => {
  const store = createDatabase({ url: server.url });
  const sessions = async () => {
    const [row] = await store.query<{ sessions: bigint }>({
      text: 'select sessions from pg_stat_database where datname = current_database()',
    });
    return row?.sessions ?? 0n;
  };
  const readings: ReturnType<typeof overview>[] = [];
  await store.transaction(async (tx) => {
    await tx.query({ text: 'lock table refold.dead_letters in access exclusive mode' });
    const before = await sessions();
    // The overview asks over a connection of its own whether the store responds. The first ones may be those that were just read.
    await until(async () => {
      readings.push(overview());
      return (await sessions()) > before;
    });
  });
  for (const { versions } of await Promise.all(readings)) expect(versions.storesAway).toEqual([]);
  await store.close();
});
