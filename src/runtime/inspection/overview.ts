import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { type ConnectionFacts, readAppendRate, readConnections } from '../../store/browsing/table-facts.ts';
import { readStalls, type Stall } from '../../store/log/horizon.ts';
import { type HeldLease, readLeases } from '../../store/ownership/leases.ts';
import { type RunningProcess, readRunningDetails } from '../../store/ownership/live-processes.ts';
import { type LostOwner, readLostOwners } from '../../store/ownership/processes.ts';
import { readThroughput, type Throughput } from '../../store/processors/runs.ts';
import { type ReadStore, readEachStore } from '../../store/read-store.ts';
import { readViewsBehind } from '../../store/tables/views-behind.ts';
import { readStatusOfStores, type VersionStatus } from '../monitoring/status.ts';
import { type ReactorStatus, readReactorStatus } from '../reactors/reactor-operations.ts';
import { answeringVersions } from '../versions/answering-versions.ts';
import { viewBehindText } from '../versions/follow-views.ts';
import { type BoundedCount, boundedCount, countBound, type InspectedApplication } from './application.ts';
import { byHealth, type Health, healthOf } from './health.ts';

/** A version, as an operator sees it. */
export interface InspectedVersion extends VersionStatus {
  readonly id: string;
  readonly health: Health;
  /** Its declaration; undefined if this process has none. */
  readonly declared: Projection | undefined;
  /** Whether clients are answered by it, in at least one process. */
  readonly answers: boolean;
  /** Positions of the log per second in the last minute. */
  readonly pace: number;
  readonly rebuildPace: Pick<Throughput, 'eventsPerSecond' | 'positionsPerSecond'>;
}

export interface InspectedReactor extends ReactorStatus {
  readonly isDeclared: boolean;
}

/** Everything that an operator sees first, read at about one time. */
export interface Overview {
  readonly at: string;
  readonly head: GlobalPosition;
  readonly horizon: GlobalPosition;
  readonly stalls: readonly Stall[];
  readonly appendsPerSecond: number;
  /** Those that need attention first. */
  readonly versions: readonly InspectedVersion[];
  readonly reactors: readonly InspectedReactor[];
  /** Of all versions and reactors. */
  readonly deadLetters: BoundedCount;
  readonly processes: readonly RunningProcess[];
  readonly lostOwners: readonly (Omit<LostOwner, 'owner'> & InStore & { readonly name: string })[];
  readonly leases: readonly (HeldLease & InStore)[];
  /** Those to the database of the log. */
  readonly connections: ConnectionFacts;
  /** All read stores, that of the log first. */
  readonly stores: readonly InspectedStore[];
  readonly answers: readonly InspectedAnswer[];
  /** Sentences about stable views that do not show the version that answers yet. */
  readonly viewsBehind: readonly string[];
  /** Versions that this process declares, and that no process has registered yet. Those of a store that does not respond are not known. */
  readonly notRegistered: readonly string[];
}

export interface InStore {
  /** The name of the read store. */
  readonly store: string;
}

/** Which version answers clients of a projection, and in which processes. */
export interface InspectedAnswer {
  readonly projection: string;
  /** Such as `cart_summary@2`; null if no version answers. */
  readonly version: string | null;
  /** The version that answers some clients instead. */
  readonly canary: string | null;
  readonly processes: readonly string[];
}

export interface InspectedStore {
  readonly name: string;
  /** Whether it does not respond: its versions are missing from the overview. */
  readonly isAway: boolean;
  readonly versionCount: number;
  /** Null if it does not respond. */
  readonly connections: ConnectionFacts | null;
  /** Its versions when this process last read them; null if it responds, or if this process has never read them. */
  readonly lastKnown: LastKnown | null;
}

export interface LastKnown {
  readonly at: string;
  readonly versions: readonly Pick<InspectedVersion, 'id' | 'state' | 'position'>[];
}

export function namesAway(stores: readonly InspectedStore[]): readonly string[] {
  return stores.flatMap(({ name, isAway }) => (isAway ? [name] : []));
}

// A page shows no more, and an application rarely has more.
const mostStalls = 20;
// Positions of the log that one overview visits to tell how far all versions are behind.
const lagPositions = 20_000;
const mostProcesses = 200;
const mostLeases = 1000;

// A process sends a heartbeat every second or so; on a busy machine it may be late.
const silentSeconds = 15;

/** What the overview says of the whole database of a store, and not of its versions. */
async function readStoreFacts({ name: store, db }: ReadStore, readSchema: string) {
  return {
    store,
    throughputs: await readThroughput(db),
    processes: await readRunningDetails(db, mostProcesses),
    lostOwners: (await readLostOwners(db, silentSeconds)).map(({ owner: name, ...one }) => ({ name, ...one, store })),
    leases: (await readLeases(db, mostLeases)).map((one) => ({ ...one, store })),
    connections: await readConnections(db),
    viewsBehind: (await readViewsBehind(db, readSchema)).map((view) => viewBehindText(readSchema, view)),
  };
}

export async function readOverview({ db, stores, log, config }: InspectedApplication): Promise<Overview> {
  const horizon = await log.horizon();
  const status = await readStatusOfStores(stores, log, { letters: countBound + 1, positions: lagPositions });
  const { versions: statuses } = status;
  // Nobody waits twice for a store.
  const silent = () => new Set([...(stores.silent?.() ?? []), ...status.away]);
  const { found: facts, away } = await readEachStore({ ...stores, silent }, (store) =>
    readStoreFacts(store, config.database.readSchema),
  );
  const [home] = facts;
  if (!home) throw new TypeError('The store of the log responds, or the overview fails.'); // as `readEachStore` does
  const reactors = await readReactorStatus(db, log, countBound + 1);
  const processes = together(facts.flatMap((one) => one.processes));
  const answers = answeringVersions(statuses, processes);
  const head = await log.head();
  const versions = statuses.map((status): InspectedVersion => {
    const { throughputs = [] } = facts.find(({ store }) => store === status.store) ?? {};
    const own = throughputs.filter(({ name, version }) => name === status.name && version === status.version);
    const paces = own.filter(({ kind }) => kind === 'processor').map((one) => one.positionsPerSecond);
    const [rebuild] = own.filter(({ kind }) => kind === 'rebuild');
    return {
      ...status,
      id: `${status.name}@${status.version}`,
      health: healthOf(status),
      declared: config.projections.find((one) => one.name === status.name && one.version === status.version),
      answers: answers.some(({ name, version }) => name === status.name && version === status.version),
      // The slowest partition decides when it has caught up.
      pace: paces.length < status.partitions.length ? 0 : Math.min(...paces),
      rebuildPace: rebuild ?? { eventsPerSecond: 0, positionsPerSecond: 0 },
    };
  });
  const letters = [...statuses, ...reactors].map(({ deadLetters }) => deadLetters);
  const isExact = letters.every((count) => count <= countBound);
  return {
    at: new Date().toISOString(),
    head,
    horizon,
    stalls: (await readStalls(db)).slice(0, mostStalls),
    appendsPerSecond: await readAppendRate(db),
    versions: versions.toSorted(byHealth),
    reactors: reactors.map((one) => ({ ...one, isDeclared: config.reactors.some(({ name }) => name === one.name) })),
    deadLetters: { value: letters.reduce((sum, count) => sum + boundedCount(count).value, 0), isExact },
    processes,
    lostOwners: facts.flatMap((one) => one.lostOwners),
    leases: facts.flatMap((one) => one.leases),
    connections: home.connections,
    stores: [stores.home, ...stores.apart].map(({ name }) => ({
      name,
      isAway: away.includes(name),
      versionCount: statuses.filter(({ store }) => store === name).length,
      connections: facts.find(({ store }) => store === name)?.connections ?? null,
      lastKnown: null,
    })),
    answers: answers.map(({ name, version, canary, processes }) => ({
      projection: name,
      version: version === null ? null : `${name}@${version}`,
      canary: canary ? `${name}@${canary.version}` : null,
      processes,
    })),
    viewsBehind: facts.flatMap((one) => one.viewsBehind),
    notRegistered: config.projections
      .filter(({ id, store }) => !away.includes(store) && !versions.some((one) => one.id === id))
      .map(({ id }) => id),
  };
}

/** A process announces itself in each store, with what it owns there. */
function together(announced: readonly RunningProcess[]): readonly RunningProcess[] {
  const byName = [...Map.groupBy(announced, ({ name }) => name).values()];
  return byName.flatMap(([first, ...others]) =>
    first ? [{ ...first, owns: [first, ...others].flatMap(({ owns }) => owns) }] : [],
  );
}

/** Seconds until it has caught up at its pace; null if it has, or if it does not move. */
export function etaOf(left: bigint, pace: number): number | null {
  return left > 0n && pace > 0 ? Number(left) / pace : null;
}

/** Reads the overview for everybody who looks at the same time. */
export interface OverviewReader {
  /** An overview that is not older than the last reading took, ten times over. */
  read(): Promise<Overview>;
  /** One that was read after this call. */
  readAgain(): Promise<Overview>;
  /** The next one is read after this call, for example because an action has changed something. */
  forget(): void;
}

// The share of the time in which this process reads the overview, whoever asks for it and however long it takes.
const restFactor = 10;
const leastMs = 200;
const mostMsIfAway = 1000;

export function createOverviewReader(application: InspectedApplication): OverviewReader {
  const lastKnown = new Map<string, LastKnown>();
  let known: { readonly overview: Overview; readonly until: number } | undefined;
  let reading: Promise<Overview> | undefined;
  const begin = (): Promise<Overview> => {
    const since = performance.now();
    const own = readOverview(application).then((read) => {
      const overview = withLastKnown(read, lastKnown);
      const now = performance.now();
      // Forgotten since.
      if (reading !== own) return overview;
      // The time of waiting for a store that does not respond is not the time of the database.
      const most = namesAway(overview.stores).length > 0 ? mostMsIfAway : Number.POSITIVE_INFINITY;
      known = { overview, until: now + Math.min(most, Math.max(leastMs, (now - since) * restFactor)) };
      return overview;
    });
    reading = own;
    return own.finally(() => {
      if (reading === own) reading = undefined;
    });
  };
  return {
    async read() {
      if (known && performance.now() < known.until) return known.overview;
      return reading ?? begin();
    },
    readAgain: begin,
    forget() {
      known = undefined;
      reading = undefined;
    },
  };
}

/** Adds what was known of a store that does not respond, and remembers what is known of the others. */
function withLastKnown(overview: Overview, lastKnown: Map<string, LastKnown>): Overview {
  const { at, versions, stores } = overview;
  for (const { name, isAway } of stores) {
    if (isAway) continue;
    const own = versions.filter(({ store }) => store === name);
    lastKnown.set(name, { at, versions: own.map(({ id, state, position }) => ({ id, state, position })) });
  }
  const withKnown = (store: InspectedStore) =>
    store.isAway ? { ...store, lastKnown: lastKnown.get(store.name) ?? null } : store;
  return { ...overview, stores: stores.map(withKnown) };
}
