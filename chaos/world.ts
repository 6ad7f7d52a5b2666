import { defineConfig } from '../src/index.ts';
import { openApplicationLog } from '../src/runtime/commands/application-log.ts';
import { type OperatorStores, openOperatorStores } from '../src/runtime/stores/operator-stores.ts';
import type { EventLog } from '../src/store/event-log.ts';
import { createDatabase, type Database } from '../src/store/postgres/database.ts';
import { inEachStore } from '../src/store/read-store.ts';
import { readRegistry } from '../src/store/registry/registry.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { freePort } from '../test/support/postgres-cluster.ts';
import type { TcpProxy } from '../test/support/tcp-proxy.ts';
import { until } from '../test/support/until.ts';
import { apart, operatedConfig } from './apart.ts';
import { installAudit } from './audit.ts';
import { type Clients, startClients } from './clients/clients.ts';
import { families, standing } from './domain.ts';
import type { HeldStream } from './held-streams.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { startOnCall } from './on-call.ts';
import { createPlace, type Place } from './place.ts';
import { gateways, workers } from './plan.ts';
import { type Server, startServer } from './server.ts';
import { patienceMs } from './settle.ts';
import type { StoreOutage } from './store-faults.ts';
import { type StoreServer, startStoreServer } from './store-server.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { noTrials, type Trials } from './trials/trials.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly ownership: 'advisory' | 'lease';
  readonly leaseSeconds: number;
  readonly appendsPerSecond: number;
  /** Whether the disk can be full. */
  readonly smallDisk: boolean;
}

/** An application in use: a server of the log and a read store, workers and gateways in separate processes, traffic and clients. */
export interface World {
  readonly options: WorldOptions;
  readonly server: Server;
  readonly storeServer: StoreServer;
  /** The URL of the database, through a network that no fault affects. */
  readonly url: string;
  /** All databases, for the actions of faults and judges. No fault affects the networks to them. */
  readonly stores: OperatorStores;
  /** That of the log. */
  readonly db: Database;
  /** The traffic's log: its appends also write the inline projection. */
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly traffic: Traffic;
  /** Between the traffic and the database. */
  readonly trafficNetwork: TcpProxy;
  readonly clients: Clients;
  readonly workers: readonly Place[];
  readonly gateways: readonly Place[];
  /** The versions of the versioned read models that are not retired and that a process declares. */
  lowest: number;
  highest: number;
  /** Problems that the judges do not find: processes that died, stops that took too long. */
  readonly incidents: string[];
  /** Those of the store while no other fault was active. */
  readonly storeOutages: StoreOutage[];
  readonly heldStreams: HeldStream[];
  readonly trials: Trials;
  /** Starts a process in an empty place, and again if a fault ends it before it runs. Returns its name; `started` waits for it. */
  start(place: Place, highest?: number): string;
  /** Resolves when all started processes run. */
  started(): Promise<void>;
  /** Stops everything. */
  close(options: { readonly keepFiles: boolean }): Promise<void>;
}

export async function createWorld(options: WorldOptions): Promise<World> {
  const server = await startServer({ disk: options.smallDisk });
  const { url } = server;
  await migrate(url);
  const storeServer = await startStoreServer();
  const stores = openOperatorStores(operatedConfig(url, storeServer.url), url, { applicationName: 'chaos' });
  const { db } = stores;
  for (const store of [stores.stores.home, ...stores.stores.apart]) await installAudit(store.db);
  const trafficNetwork = await server.network();
  const appends = createDatabase({ url: trafficNetwork.url, applicationName: 'chaos traffic' });
  const config = defineConfig({ events: families, projections: [standing] });
  const traffic = openApplicationLog(appends, config, { freeze: false, applicationName: 'chaos traffic' });
  const { log } = traffic;
  const ledger = createLedger();
  const incidents: string[] = [];
  const starts = new Set<Promise<void>>();
  const { ownership, leaseSeconds, seed, appendsPerSecond } = options;

  const places = async (role: Place['role'], count: number) =>
    Promise.all(
      Array.from({ length: count }, async (_, index) =>
        createPlace({
          ...{ role, index, port: await freePort() },
          ...{ network: await server.network(), storeNetwork: await storeServer.network() },
        }),
      ),
    );

  async function startAgain(place: Place, highest: number): Promise<void> {
    for (;;) {
      try {
        await place.start({ ownership, leaseSeconds, lowest: world.lowest, highest });
        return;
      } catch (error) {
        // The effects of a fault on a starting process.
        if (/DATABASE_UNREACHABLE|DATABASE_UNAVAILABLE|OUTCOME_UNKNOWN|No space left/.test(String(error))) continue;
        incidents.push(String(error));
        return;
      }
    }
  }

  const workerPlaces = await places('worker', workers);
  const gatewayPlaces = await places('gateway', gateways);
  const onCall = startOnCall({ store: stores.stores.of({ store: apart }).db, log, ledger, incidents });
  const world: World = {
    options,
    server,
    storeServer,
    url,
    stores,
    db,
    log,
    ledger,
    traffic: startTraffic(log, ledger, seed, appendsPerSecond),
    trafficNetwork: trafficNetwork.proxy,
    clients: startClients({ gateways: gatewayPlaces.map(({ url }) => url), ledger, seed }),
    workers: workerPlaces,
    gateways: gatewayPlaces,
    lowest: 1,
    highest: 1,
    incidents,
    storeOutages: [],
    heldStreams: [],
    trials: noTrials(),
    start(place, highest = world.highest) {
      world.highest = Math.max(world.highest, highest);
      const name = place.nextName();
      const starting = startAgain(place, highest).finally(() => starts.delete(starting));
      starts.add(starting);
      return name;
    },
    async started() {
      await Promise.all(starts);
    },
    async close({ keepFiles }) {
      await world.started();
      await world.clients.stop();
      await Promise.all([...workerPlaces, ...gatewayPlaces].map(({ process }) => process?.end('SIGKILL')));
      await world.traffic.stop();
      await traffic.close();
      await appends.close();
      await onCall.stop();
      await stores.close();
      await storeServer.close({ keepFiles });
      await server.close({ keepFiles });
    },
  };
  for (const [index, place] of workerPlaces.entries()) world.start(place, index === 0 ? 1 : 2);
  await world.started();
  // A gateway that starts while the first version is being built can't serve it yet.
  const deadline = Date.now() + patienceMs;
  await until(async () => {
    const building = (await inEachStore(stores.stores, readRegistry)).filter(({ state }) => state !== 'active');
    if (building.length > 0 && Date.now() > deadline)
      throw new Error(`Not active after ${patienceMs} ms: ${building.map(({ name }) => name).join(', ')}`);
    return building.length === 0;
  });
  for (const place of gatewayPlaces) world.start(place);
  await world.started();
  return world;
}
