import { type Projection, storedIn } from '../projections/projection.ts';
import type { ServedVersion, VersionMap, VersionState } from '../projections/version-map.ts';
import type { Database } from '../store/database.ts';
import { type RegisteredVersion, readRegistry, registryChannel } from '../store/registry.ts';

/** What this process knows of the registry, kept current. */
export interface Versions {
  /** Which declared version answers for each projection. */
  current(): VersionMap;
  stateOf(name: string, version: number): VersionState | undefined;
  /**
   * The declared version with the table that its rows are in now. The same object until its rows are others than before for
   * another reason than an event: whoever remembers rows of it reads them again then.
   */
  stored(projection: Projection): Projection;
  /** Called after each change of the map or of a state. */
  onChange(listener: () => void): () => void;
  /** Looks now, instead of at the next notification. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface Notifications {
  on(channel: string, listener: (payload: string | undefined) => void): () => void;
}

// Where notifications can't work (transaction-mode poolers), an activation shows after this long.
const lookEveryMilliseconds = 1000;

export async function createVersions(options: {
  readonly db: Database;
  readonly projections: readonly Projection[];
  readonly notifications: Notifications;
  onError(error: unknown): void;
}): Promise<Versions> {
  const { db, projections, notifications, onError } = options;
  const listeners = new Set<() => void>();
  let states = new Map<string, VersionState>();
  let tables = new Map<string, Pick<RegisteredVersion, 'tableName' | 'generation'>>();
  const known = new Map<string, Projection>();
  let map: VersionMap = { revision: '', served: new Map() };
  let lastSeen = '';
  let looking: Promise<void> | undefined;
  let lookAgain = false;

  async function look(): Promise<void> {
    const registered = await readRegistry(db);
    const seen = JSON.stringify(
      registered.map(({ name, version, state, tableName, generation }) => [
        name,
        version,
        state,
        tableName,
        generation,
      ]),
    );
    if (seen === lastSeen) return;
    lastSeen = seen;
    states = new Map(registered.map((entry) => [`${entry.name}@${entry.version}`, entry.state]));
    tables = new Map(registered.map((entry) => [`${entry.name}@${entry.version}`, entry]));
    const served = serve(projections.map(stored), registered);
    const revision = [...served.values()]
      .map(({ projection, active }) => `${projection.id} ${tables.get(projection.id)?.generation}${active ? '' : '?'}`)
      .join(', ');
    if (revision !== map.revision) map = Object.freeze({ revision, served });
    for (const listener of listeners) listener();
  }

  function stored(projection: Projection): Projection {
    const { tableName, generation } = tables.get(projection.id) ?? { tableName: projection.tableName, generation: 1 };
    const place = `${projection.id} ${tableName} ${generation}`;
    const version = known.get(place) ?? storedIn(projection, tableName);
    known.set(place, version);
    return version;
  }

  /** One look at a time; what happens during one is seen by a second. */
  function refresh(): Promise<void> {
    lookAgain = true;
    looking ??= (async () => {
      try {
        while (lookAgain) {
          lookAgain = false;
          await look();
        }
      } finally {
        looking = undefined;
      }
    })();
    return looking;
  }

  await refresh();
  const quietly = () => void refresh().catch(onError);
  const stopListening = notifications.on(registryChannel, quietly);
  const timer = setInterval(quietly, lookEveryMilliseconds);

  return {
    current: () => map,
    stateOf: (name, version) => states.get(`${name}@${version}`),
    stored,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    refresh,
    async close() {
      clearInterval(timer);
      stopListening();
      listeners.clear();
      await looking?.catch(() => {});
    },
  };
}

function serve(
  projections: readonly Projection[],
  registered: readonly RegisteredVersion[],
): ReadonlyMap<string, ServedVersion> {
  const stateOf = (projection: Projection) =>
    registered.find((entry) => entry.name === projection.name && entry.version === projection.version)?.state;
  const served = new Map<string, ServedVersion>();
  for (const [name, declared] of Map.groupBy(projections, (projection) => projection.name)) {
    const sorted = declared.toSorted((a, b) => a.version - b.version);
    const active = sorted.findLast((projection) => stateOf(projection) === 'active');
    const onItsWay = sorted.find((projection) => !['retired', undefined].includes(stateOf(projection)));
    const projection = active ?? onItsWay;
    if (projection)
      served.set(name, { projection, active: active !== undefined, state: stateOf(projection) ?? 'building' });
  }
  return served;
}
