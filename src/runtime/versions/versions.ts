import { RefoldError, type RefoldErrorCode } from '../../errors.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type {
  Canary,
  DeprecatedVersion,
  Pins,
  ServedVersion,
  ShadowRule,
  VersionMap,
  VersionState,
} from '../../projections/projection/version-map.ts';
import type { RegisteredVersion } from '../../store/registry/registry.ts';
import { registryChannel } from '../../store/registry/transitions.ts';
import { createSharedRun } from '../scheduling/shared-run.ts';
import { createRegistries, type RegistrySource } from './registries.ts';

/** The registry as this process knows it, kept current. */
export interface Versions {
  /** Returns which declared version answers for each projection. */
  current(): VersionMap;
  /**
   * Like {@link current}, with these versions in place of others: any version that is declared here and maintained, active or not.
   *
   * @throws RefoldError `BAD_USER_INPUT` for any other version
   */
  pinned(pins: Pins): VersionMap;
  /** The ready versions declared here that answer some clients. */
  canaries(): readonly Canary[];
  /** The ready versions declared here that are compared with the answering ones. */
  shadows(): readonly ShadowRule[];
  stateOf(name: string, version: number): VersionState | undefined;
  /** The versions, for example `cart_summary@2`, whose processor has stopped at an event. */
  stopped(): ReadonlySet<string>;
  /** Whether an operator has paused the version: nobody maintains it. */
  isPaused(name: string, version: number): boolean;
  /** Whether the version's rows commit with appends now: it is live, or about to leave them. */
  isJoined(projection: Projection): boolean;
  /** Returns the number of partitions of a version. */
  partitionsOf(projection: Projection): number;
  /**
   * Returns the declared version with the table that holds its rows now. The object is the same until the rows change for another reason than
   * an event. Code that caches rows of it must then read them again.
   */
  stored(projection: Projection): Projection;
  /** Returns {@link stored} of this moment: what changes later does not change its results. */
  storedNow(): (projection: Projection) => Projection;
  /** Called after each change of the map or of a state. */
  onChange(listener: () => void): () => void;
  /** Reads the registry now, instead of at the next notification. */
  refresh(): Promise<void>;
  /** Replaces the declared versions. The map changes, also if it serves the same versions: their code may be another. */
  redeclare(projections: readonly Projection[]): Promise<void>;
  close(): Promise<void>;
}

interface VersionStore extends RegistrySource {
  readonly notifications: { on(channel: string, listener: (payload: string | undefined) => void): () => void };
}

// Without notifications (transaction-mode poolers), an activation becomes visible within this time.
const lookEveryMilliseconds = 1000;

export async function createVersions(options: {
  /** The one in the database of the log comes first. */
  readonly stores: readonly [VersionStore, ...VersionStore[]];
  readonly projections: readonly Projection[];
  onError(error: unknown): void;
}): Promise<Versions> {
  const { stores, onError } = options;
  let { projections } = options;
  let declarations = 1;
  const listeners = new Set<() => void>();
  let states = new Map<string, VersionState>();
  let tables = new Map<string, RegisteredVersion>();
  const storedBy = createStoredVersions();
  const stored = (projection: Projection) => storedBy(tables, projection);
  let map: VersionMap = { revision: '', served: new Map() };
  let registry: readonly RegisteredVersion[] = [];
  let canaries: readonly Canary[] = [];
  let shadows: readonly ShadowRule[] = [];
  let stopped: ReadonlySet<string> = new Set();
  let lastSeen = '';
  const looks = createSharedRun(look);

  async function look(): Promise<void> {
    await registries.read();
    const registered = registries.known(projections);
    const unread = registries.unread();
    stopped = new Set(
      registered.filter(({ status }) => status === 'stopped').map((entry) => `${entry.name}@${entry.version}`),
    );
    const seen = whatMatters(registered).concat(...unread);
    if (seen === lastSeen) return;
    lastSeen = seen;
    registry = registered;
    states = new Map(registered.map((entry) => [`${entry.name}@${entry.version}`, entry.state]));
    tables = new Map(registered.map((entry) => [`${entry.name}@${entry.version}`, entry]));
    const served = serve(projections.map(stored), registered, unread);
    const revision = revisionOf(served);
    // If no version is active, clients are asked to wait.
    const waiting = registered.filter(
      ({ name, version, state }) =>
        state === 'ready' &&
        served.get(name)?.active &&
        projections.some((one) => one.name === name && one.version === version),
    );
    canaries = waiting.flatMap(({ name, version, canary }) => (canary ? [{ name, version, ...canary }] : []));
    shadows = waiting.flatMap(({ name, version, shadow }) => (shadow ? [{ name, version, ...shadow }] : []));
    if (revision !== map.revision) map = Object.freeze({ revision, shape: shapeOf(revision), served });
    for (const listener of listeners) listener();
  }

  function revisionOf(served: VersionMap['served']): string {
    const versions = [...served.values()].map(
      ({ projection, active }) => `${projection.id} ${tables.get(projection.id)?.generation}${active ? '' : inactiveMark}`,
    );
    return (declarations === 1 ? versions : [...versions, `declarations ${declarations}`]).join(', ');
  }

  function pinned(pins: Pins): VersionMap {
    if (pins.size === 0) return map;
    const served = new Map(map.served);
    const deprecated: DeprecatedVersion[] = [];
    for (const [name, version] of pins) {
      const declared = projections.find((one) => one.name === name && one.version === version);
      const state = states.get(`${name}@${version}`);
      if (!declared || !state) throw notServed(name, version, 'it is not declared here');
      if (state !== 'active' && state !== 'ready') throw notServed(name, version, `it is ${state}`);
      served.set(name, { projection: stored(declared), active: true, state });
      const higher = registry.findLast((entry) => entry.name === name && entry.state === 'active');
      if (higher && higher.version > version)
        deprecated.push({ id: declared.id, since: new Date(higher.stateChangedAt), sunset: declared.sunset });
    }
    const revision = revisionOf(served);
    return revision === map.revision ? map : { revision, shape: shapeOf(revision), served, deprecated };
  }

  // A change during a read is covered by a second read.
  const quietly = () => void looks.run().catch(onError);
  const registries = createRegistries(stores, quietly, onError);
  await looks.run();
  const stopListening = stores.map(({ notifications }) => notifications.on(registryChannel, quietly));
  const timer = setInterval(quietly, lookEveryMilliseconds);

  return {
    current: () => map,
    pinned,
    canaries: () => canaries,
    shadows: () => shadows,
    stateOf: (name, version) => states.get(`${name}@${version}`),
    stopped: () => stopped,
    isJoined: ({ id }) => !['building', undefined].includes(tables.get(id)?.inline ?? undefined),
    isPaused: (name, version) => tables.get(`${name}@${version}`)?.paused != null,
    partitionsOf: ({ id, partitions }) => tables.get(id)?.partitions.length ?? partitions,
    stored,
    storedNow() {
      const registered = tables; // replaced as a whole by each read of the registry
      return (projection) => storedBy(registered, projection);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    refresh: looks.run,
    redeclare(declared) {
      projections = declared;
      declarations++;
      lastSeen = '';
      return looks.run();
    },
    async close() {
      clearInterval(timer);
      for (const stop of stopListening) stop();
      listeners.clear();
      await looks.idle();
    },
  };
}

/** A text that changes whenever something changes that this process acts on. */
function whatMatters(registered: readonly RegisteredVersion[]): string {
  return JSON.stringify(
    registered.map(({ name, version, state, paused, tableName, generation, partitions, ...entry }) => [
      ...[name, version, state, paused, tableName, generation, partitions.length],
      ...[entry.inline, entry.canary, entry.shadow, entry.error?.code === tableAltered],
    ]),
  );
}

/** Creates a function that returns a version with the table that holds its rows: the same object as long as it holds the same rows. */
function createStoredVersions() {
  const known = new WeakMap<Projection, Map<string, Projection>>();
  const origins = new WeakMap<Projection, Projection>();
  return (registered: ReadonlyMap<string, RegisteredVersion>, projection: Projection): Projection => {
    const declared = origins.get(projection) ?? projection;
    const found = registered.get(declared.id);
    const { tableName, generation } = found ?? { tableName: declared.tableName, generation: 1 };
    const place = `${tableName} ${generation}`;
    const places = known.get(declared) ?? new Map<string, Projection>();
    const version = places.get(place) ?? storedIn(declared, tableName);
    known.set(declared, places.set(place, version));
    origins.set(version, declared);
    return version;
  };
}

/** @param unread stores of which nothing is known: their versions are taken for active ones whose tables can't be read */
function serve(
  projections: readonly Projection[],
  registered: readonly RegisteredVersion[],
  unread: ReadonlySet<string>,
): ReadonlyMap<string, ServedVersion> {
  const stateOf = (projection: Projection) =>
    registered.find((entry) => entry.name === projection.name && entry.version === projection.version)?.state;
  // Responses from an altered table would fail or be wrong.
  const isAltered = ({ name, version }: Projection) =>
    registered.some((entry) => entry.name === name && entry.version === version && entry.error?.code === tableAltered);
  const served = new Map<string, ServedVersion>();
  for (const [name, declared] of Map.groupBy(projections, (projection) => projection.name)) {
    const sorted = declared.toSorted((a, b) => a.version - b.version);
    const active = sorted.findLast((projection) => stateOf(projection) === 'active');
    const unknown = sorted.findLast(({ store }) => unread.has(store));
    const onItsWay = sorted.find((projection) => !['retired', 'failed', undefined].includes(stateOf(projection)));
    const failed = sorted.find((projection) => stateOf(projection) === 'failed');
    const projection = active ?? unknown ?? onItsWay ?? failed;
    if (projection)
      served.set(name, {
        projection,
        active: active !== undefined && !isAltered(active),
        state: projection === unknown ? 'active' : (stateOf(projection) ?? 'building'),
      });
  }
  return served;
}

/** Without the marks of what is not active. */
function shapeOf(revision: string): string {
  return revision.replaceAll(inactiveMark, '');
}

const inactiveMark = '?';

const tableAltered: RefoldErrorCode = 'TABLE_ALTERED';

function notServed(name: string, version: number, because: string): RefoldError {
  return new RefoldError('BAD_USER_INPUT', `${name}@${version} can't be pinned: ${because}.`);
}
