import { RefoldError, type RefoldErrorCode } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type {
  DeprecatedVersion,
  Pins,
  Rollout,
  ServedVersion,
  VersionMap,
  VersionState,
} from '../../projections/projection/version-map.ts';
import { uncheckedText } from '../../store/registry/inline-versions.ts';
import { storedOnce } from '../../store/registry/stored-once.ts';
import { registryChannel } from '../../store/registry/transitions.ts';
import { createSharedRun } from '../scheduling/shared-run.ts';
import {
  createRegistries,
  createStoredVersions,
  type RegistrySource,
  type StoredVersion,
  type VersionsById,
  versionsById,
} from './registries.ts';

/** Versions as this process knows them. */
export interface VersionView {
  /** What the registry says: another object whenever the results of the following functions may differ, except {@link stopped}. */
  registered(): object;
  stateOf(name: string, version: number): VersionState | undefined;
  /** The versions, for example `cart_summary@2`, whose processor has stopped at an event. */
  stopped(): ReadonlySet<string>;
  /** By version id, why appends are refused: nothing checks its unique values. */
  unchecked(): ReadonlyMap<string, string>;
  /** Whether an operator has paused the version: nobody maintains it. */
  isPaused(name: string, version: number): boolean;
  /** Whether the version's rows commit with appends now: it is live, or about to leave them. */
  isJoined(projection: Projection): boolean;
  /** Returns the number of partitions of a version. */
  partitionsOf(projection: Projection): number;
  /**
   * Returns the declared version with the store and the table that hold its rows now. The object is the same until the rows change for another
   * reason than an event. Code that caches rows of it must then read them again.
   */
  stored(projection: Projection): Projection;
  /** Returns {@link stored} of this moment: what changes later does not change its results. */
  storedNow(): (projection: Projection) => Projection;
  /** Called after each change of the map or of a state. */
  onChange(listener: () => void): () => void;
  /** Reads the registries now, instead of at the next notification. */
  refresh(): Promise<void>;
}

/** The versions of all stores, kept current. */
export interface Versions extends VersionView {
  /** Those of the registries of all stores, as last read. */
  registries(): readonly StoredVersion[];
  /** The versions of one store. */
  in(store: string): VersionView;
  /** Returns which declared version answers for each projection. */
  current(): VersionMap;
  /**
   * Like {@link current}, with these versions in place of others: any version that is declared here and maintained, active or not.
   *
   * @throws RefoldError `BAD_USER_INPUT` for any other version
   */
  pinned(pins: Pins): VersionMap;
  /** The ready versions declared here that clients meet before they are active. One object, whose fields change. */
  readonly rollout: Rollout;
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
  // Replaced as a whole by each read of the registries.
  let all: readonly StoredVersion[] = [];
  let registry: readonly StoredVersion[] = [];
  let tables: VersionsById = new Map();
  let tablesIn: ReadonlyMap<string, VersionsById> = new Map();
  const storedBy = createStoredVersions();
  const stored = (projection: Projection) => storedBy(tables, projection);
  let map: VersionMap = { revision: '', served: new Map() };
  const rollout: { -readonly [Field in keyof Rollout]: Rollout[Field] } = { canaries: [], shadows: [] };
  let lastSeen = '';
  const looks = createSharedRun(look);

  async function look(): Promise<void> {
    await registries.read();
    const read = registries.versions();
    if (read === all && lastSeen !== '') return;
    all = read;
    const unread = registries.unread();
    const seen = whatMatters(all).concat(...unread);
    if (seen === lastSeen) return;
    lastSeen = seen;
    registry = storedOnce(all);
    tables = versionsById(registry);
    tablesIn = new Map([...Map.groupBy(all, ({ store }) => store)].map(([store, own]) => [store, versionsById(own)]));
    const served = serve(projections.map(stored), registry, unread);
    const revision = revisionOf(served, tables, declarations);
    // If no version is active, clients are asked to wait.
    const waiting = registry.filter(
      ({ name, version, state }) =>
        state === 'ready' &&
        served.get(name)?.active &&
        projections.some((one) => one.name === name && one.version === version),
    );
    rollout.canaries = waiting.flatMap(({ name, version, canary }) => (canary ? [{ name, version, ...canary }] : []));
    rollout.shadows = waiting.flatMap(({ name, version, shadow }) => (shadow ? [{ name, version, ...shadow }] : []));
    if (revision !== map.revision) map = Object.freeze({ revision, shape: shapeOf(served, declarations), served });
    for (const listener of listeners) listener();
  }

  function pinned(pins: Pins): VersionMap {
    if (pins.size === 0) return map;
    const served = new Map(map.served);
    const deprecated: DeprecatedVersion[] = [];
    for (const [name, version] of pins) {
      const declared = projections.find((one) => one.name === name && one.version === version);
      const state = tables.get(`${name}@${version}`)?.state;
      if (!declared || !state) throw notServed(name, version, 'it is not declared here');
      if (state !== 'active' && state !== 'ready') throw notServed(name, version, `it is ${state}`);
      served.set(name, { projection: stored(declared), active: true, state });
      const higher = registry.findLast((entry) => entry.name === name && entry.state === 'active');
      if (higher && higher.version > version)
        deprecated.push({ id: declared.id, since: new Date(higher.stateChangedAt), sunset: declared.sunset });
    }
    const revision = revisionOf(served, tables, declarations);
    return revision === map.revision ? map : { revision, shape: shapeOf(served, declarations), served, deprecated };
  }

  function onChange(listener: () => void): () => void {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  // A change during a read is covered by a second read.
  const quietly = () => void looks.run().catch(onError);
  const registries = createRegistries(stores, quietly, onError);
  await looks.run();
  const stopListening = stores.map(({ notifications }) => notifications.on(registryChannel, quietly));
  const timer = setInterval(quietly, lookEveryMilliseconds);

  return {
    current: () => map,
    registries: () => all,
    pinned,
    rollout,
    ...viewOf(
      storedBy,
      () => tables,
      () => storedOnce(all),
    ),
    in(store) {
      const own = () => all.filter((one) => one.store === store);
      return { ...viewOf(storedBy, () => tablesIn.get(store) ?? new Map(), own), onChange, refresh: looks.run };
    },
    onChange,
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

/** The versions in one registry, or of all, as last read. */
function viewOf(
  storedBy: ReturnType<typeof createStoredVersions>,
  byId: () => VersionsById,
  all: () => readonly StoredVersion[],
): Omit<VersionView, 'onChange' | 'refresh'> {
  return {
    registered: byId,
    stateOf: (name, version) => byId().get(`${name}@${version}`)?.state,
    // As last read: whether a processor has stopped is no change of the map.
    stopped: () =>
      new Set(all().flatMap(({ name, version, status }) => (status === 'stopped' ? [`${name}@${version}`] : []))),
    unchecked: () =>
      new Map(all().flatMap((one) => uncheckedText(one).map((text) => [`${one.name}@${one.version}`, text]))),
    isJoined: ({ id }) => !['building', undefined].includes(byId().get(id)?.inline ?? undefined),
    isPaused: (name, version) => byId().get(`${name}@${version}`)?.paused != null,
    partitionsOf: ({ id, partitions }) => byId().get(id)?.partitions.length ?? partitions,
    stored: (projection) => storedBy(byId(), projection),
    storedNow() {
      const registered = byId();
      return (projection) => storedBy(registered, projection);
    },
  };
}

/** A text that changes whenever something changes that this process acts on. */
function whatMatters(versions: readonly StoredVersion[]): string {
  return JSON.stringify(
    versions.map(({ name, version, state, paused, tableName, generation, partitions, ...entry }) => [
      ...[name, version, state, paused, tableName, generation, partitions.length],
      ...[entry.store, entry.inline, entry.unchecked, entry.canary, entry.shadow, entry.error?.code === tableAltered],
    ]),
  );
}

/** @param unread stores of which nothing is known: their versions are taken for active ones whose tables can't be read */
function serve(
  projections: readonly Projection[],
  registered: readonly StoredVersion[],
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
function revisionOf(served: VersionMap['served'], tables: VersionsById, declarations: number): string {
  const versions = [...served.values()].map(
    ({ projection: { id, store }, active }) =>
      `${id} ${store} ${tables.get(id)?.generation}${active ? '' : ' inactive'}`,
  );
  return withDeclarations(versions, declarations);
}

/** What a schema is built from. A table whose rows have changed otherwise than by an event, such as by a repair, is the same one. */
function shapeOf(served: VersionMap['served'], declarations: number): string {
  const versions = [...served.values()].map(
    ({ projection: { id, store, tableName } }) => `${id} ${store} ${tableName}`,
  );
  return withDeclarations(versions, declarations);
}

function withDeclarations(versions: readonly string[], declarations: number): string {
  return (declarations === 1 ? versions : [...versions, `declarations ${declarations}`]).join(', ');
}

const tableAltered: RefoldErrorCode = 'TABLE_ALTERED';

function notServed(name: string, version: number, because: string): RefoldError {
  return new RefoldError('BAD_USER_INPUT', `${name}@${version} can't be pinned: ${because}.`);
}
