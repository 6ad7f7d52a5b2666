import { defineConfig } from '../src/index.ts';
import { openApplicationLog } from '../src/runtime/application-log.ts';
import { createDatabase, type Database } from '../src/store/database.ts';
import type { EventLog } from '../src/store/event-log.ts';
import { migrate } from '../src/store/migrate.ts';
import { embeddedBinaries, type PostgresCluster, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { databaseUrl } from '../test/support/postgres-for-the-run.ts';
import { installAudit } from './audit.ts';
import { families, standing } from './domain.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { workers } from './plan.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { startWorker, type Worker } from './workers.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly ownership: 'advisory' | 'lease';
  readonly leaseSeconds: number;
  readonly appendsPerSecond: number;
}

/** An application under way: a server of its own, workers in processes of their own, traffic. */
export interface World {
  readonly options: WorldOptions;
  readonly cluster: PostgresCluster;
  readonly url: string;
  /** For what the faults and the judges do themselves. */
  readonly db: Database;
  /** The traffic's: what it appends is written inline, too. */
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly traffic: Traffic;
  /** By place; nothing while one is down. */
  readonly workers: (Worker | undefined)[];
  /** The versions of `balance` that are not retired, and that some process declares. */
  lowest: number;
  highest: number;
  /** What went wrong beside what the judges find: processes that died, stops that took too long. */
  readonly incidents: string[];
  /** Starts a process in a place that is empty, and again where a fault ends it before it runs. Gives its name; `started` waits for it. */
  start(place: number, highest?: number): string;
  /** Comes back when all that were started run. */
  started(): Promise<void>;
  /** Ends everything. */
  close(options: { readonly keepFiles: boolean }): Promise<void>;
}

export async function createWorld(options: WorldOptions): Promise<World> {
  const cluster = await startPostgresCluster({ binaries: await embeddedBinaries() });
  const admin = createDatabase({ url: cluster.url, applicationName: 'chaos' });
  await admin.query({ text: 'create database refold' });
  await admin.close();
  const url = databaseUrl(cluster.url, 'refold');
  await migrate(url);
  const db = createDatabase({ url, applicationName: 'chaos' });
  await installAudit(db);
  const appends = createDatabase({ url, applicationName: 'chaos traffic' });
  const config = defineConfig({ events: families, projections: [standing] });
  const traffic = openApplicationLog(appends, config, { freeze: false, applicationName: 'chaos traffic' });
  const { log } = traffic;
  const ledger = createLedger();
  const lives = Array.from({ length: workers }, () => 0);
  const incidents: string[] = [];
  const { ownership, leaseSeconds } = options;
  const starts = new Set<Promise<void>>();
  const nameOf = (place: number) => `worker ${place}.${(lives[place] ?? 0) + 1}`;

  async function startAgain(place: number, highest: number): Promise<void> {
    for (;;) {
      const name = nameOf(place);
      lives[place] = (lives[place] ?? 0) + 1;
      try {
        world.workers[place] = await startWorker(name, { url, ownership, leaseSeconds, lowest: world.lowest, highest });
        return;
      } catch (error) {
        if (String(error).includes('DATABASE_UNREACHABLE')) continue;
        incidents.push(String(error));
        return;
      }
    }
  }

  const world: World = {
    options,
    cluster,
    url,
    db,
    log,
    ledger,
    traffic: startTraffic(log, ledger, options.seed, options.appendsPerSecond),
    workers: Array.from({ length: workers }, () => undefined),
    lowest: 1,
    highest: 1,
    incidents,
    start(place, highest = world.highest) {
      world.highest = Math.max(world.highest, highest);
      const starting = startAgain(place, highest).finally(() => starts.delete(starting));
      starts.add(starting);
      return nameOf(place);
    },
    async started() {
      await Promise.all(starts);
    },
    async close({ keepFiles }) {
      await world.started();
      await Promise.all(world.workers.map((worker) => worker?.end('SIGKILL')));
      await world.traffic.stop();
      await traffic.close();
      await appends.close();
      await db.close();
      await cluster.stop({ keepFiles });
    },
  };
  for (let place = 0; place < workers; place++) world.start(place, place === 0 ? 1 : 2);
  await world.started();
  return world;
}
