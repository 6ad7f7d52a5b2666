import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Projection } from '../../src/index.ts';
import { totalsByEvolve, totalsBySql } from '../support/account-totals.ts';
import { seeded, traffic, underTraffic } from '../support/account-traffic.ts';
import { effort } from '../support/effort.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { active, inStore, type StoreServer, storeSetting } from '../support/store-setting.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

const versions: readonly (readonly [Projection, Projection])[] = [
  [balanceV1, balanceV1],
  [balanceV2, balanceV2],
  [openingsV1, openingsV1],
  [totalsBySql, totalsByEvolve],
];

/** A store whose servers also have a network between them. */
export interface NetworkedStore extends StoreServer {
  /** The network to the server that holds the tables. */
  readonly inside?: TcpProxy;
}

/**
 * What holds while the networks to a read store, and within it, fail, whatever kind of store that is. Called at the top of a file.
 */
export function readStoreNetwork(startStore: () => Promise<NetworkedStore>): void {
  const networks: TcpProxy[] = [];
  const setting = storeSetting(async () => {
    const store = await startStore();
    if (store.inside) networks.push(store.inside);
    return store;
  });
  let network: TcpProxy;
  beforeAll(async () => {
    network = await startTcpProxy(Number(new URL(setting.server.url).port));
    networks.push(network);
  });
  afterAll(() => network.close());

  const isCommit = (chunk: Buffer) => /commit/i.test(chunk.toString('latin1'));

  /** One fault, which ends before it returns. */
  async function fail(random: () => number): Promise<void> {
    const failing = networks[Math.floor(random() * networks.length)] ?? network;
    const drawn = random();
    if (drawn < 0.6) return failing.cutAfter(isCommit);
    if (drawn < 0.8) return failing.cutAll();
    if (drawn < 0.9) failing.stallFromServer();
    else failing.swallow();
    await pause(random() * 1000);
    failing.resume();
  }

  test('commits whose response is lost, and a store that is away for a minute, leave every read table equal to one fold of the log', async () => {
    console.info(`seed ${seed}`);
    const random = seeded(seed);
    const app = await setting.start({
      projections: versions.map(([projection]) => inStore(projection)),
      storeUrl: network.through(setting.server.url),
      role: 'worker',
    });
    await active(app, ...versions.map(([{ id }]) => id));
    const positions = async () => (await app.status()).map(({ position }) => position);
    const haveReached = async (position: bigint) =>
      (await positions().catch(() => [])).filter((found) => found >= position).length === versions.length;
    const isNear = (head: bigint) => haveReached(head - 500n);
    await underTraffic(app.log, random, isNear, async () => {
      for (let fault = 0; fault < effort(40, 10); fault++) await fail(random);
    });

    // Meanwhile, appends go on.
    network.swallow();
    await pause(effort(60, 3) * 1000);
    await traffic(app.log, 200, random);
    network.resume();
    const horizon = await app.log.horizon();
    await until(() => haveReached(horizon));
    for (const [projection, like] of versions) {
      const found = await storedTable(setting.store, projection);
      expect(found, `${projection.id}, seed ${seed}`).toEqual(await foldedTable(app.log, like));
    }
  });
}
