import { afterAll, expect, test } from 'vitest';
import type { Placement } from '../../src/config/read-store-options.ts';
import type { Projection } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { type RegisteredVersion, readRegistry } from '../../src/store/registry/registry.ts';
import { totalsByEvolve, totalsBySql } from '../support/account-totals.ts';
import { seeded, traffic, underTraffic } from '../support/account-traffic.ts';
import { databaseOfFile } from '../support/database-of-file.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../support/worker-processes.ts';

/** A migrated read store. */
export interface RestartableStore {
  readonly url: string;
  readonly placement?: Placement;
  /** Of its versions; with several, there is none with `evolveSql`. @default 1 */
  readonly partitions?: number;
  /** Restarts one of its servers, in any way. */
  restart(random: () => number): Promise<void>;
}

/**
 * What holds while processes that maintain a read store are killed, and its servers restart, whatever kind of store that is. Call it at the top of a
 * file.
 */
export async function readStoreKills(
  { url, placement, partitions = 1, restart }: RestartableStore,
  rounds: number,
): Promise<void> {
  const { database, log } = await databaseOfFile(account);
  const store = createDatabase({ url });
  const workers = createWorkerProcesses();
  const compared: readonly (readonly [Projection, Projection])[] = [
    [balanceV1, balanceV1],
    [balanceV2, balanceV2],
    [openingsV1, openingsV1],
    ...(partitions === 1 ? [[totalsBySql, totalsByEvolve] as const] : []),
  ];
  afterAll(async () => {
    await workers.killAll();
    await store.close();
  });

  /** Empty while the store restarts. */
  async function versions(): Promise<RegisteredVersion[]> {
    return readRegistry(store).catch(() => []);
  }

  async function haveReached(position: bigint): Promise<boolean> {
    const found = await versions();
    return found.length === compared.length && found.every(({ checkpoint }) => checkpoint >= position);
  }

  test('workers killed or stalled at random, and restarts of the store, leave every read table equal to one fold of the log', async () => {
    console.info(`seed ${seed}`);
    const random = seeded(seed);
    await traffic(log, 1_000, random);
    const names = new Map<string, WorkerProcess>();
    const start = async (owner: string) => {
      const runtime = { leaseSeconds: 2 };
      const options = {
        url: database.url,
        storeUrl: url,
        ...(placement ? { placement } : {}),
        partitions,
        evolveSql: partitions === 1,
        runtime,
        owner,
      };
      names.set(owner, await workers.start(options));
    };
    const isNear = async (head: bigint) => (await versions()).every(({ checkpoint }) => head - checkpoint < 500n);
    await underTraffic(log, random, isNear, async () => {
      await start('worker-0');
      for (let round = 1; round <= rounds; round++) {
        await start(`worker-${round}`);
        const head = await log.head();
        await until(() => haveReached(head));
        const owner = await until(async () =>
          (await versions()).flatMap(({ owner }) => owner?.split(', ') ?? []).find((name) => names.has(name)),
        );
        const victim = names.get(owner) ?? expect.unreachable();
        if (round % 3 === 0) await restart(random);
        if (round % 4 === 1) {
          // Another one takes over, and the former owner then writes nothing.
          victim.signal('SIGSTOP');
          const later = await log.head();
          await until(() => haveReached(later));
          victim.signal('SIGCONT');
        }
        await victim.end('SIGKILL');
        names.delete(owner);
      }
    });
    const horizon = await log.horizon();
    await until(() => haveReached(horizon));
    for (const [projection, like] of compared) {
      const found = await storedTable(store, projection);
      expect(found, `${projection.id}, seed ${seed}`).toEqual(await foldedTable(log, like));
    }
    for (const worker of names.values()) await worker.end('SIGTERM');
  }, 900_000); // slow on a busy machine; only the result matters
}
