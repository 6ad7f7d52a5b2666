import type { GlobalPosition } from '../../events/global-position.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import { newestOf, type VersionedReactor, versionedReactors } from '../../reactors/versioned-reactor.ts';
import { readVersionProgress, type VersionProgress } from '../../store/reactors/reactor-versions.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** A version of a reactor that has begun, and what is left of it. */
export interface ReactorVersionStatus {
  readonly version: number;
  /** It handles the events after this position. */
  readonly after: GlobalPosition;
  /** It handles the events up to this position; null for the newest version. */
  readonly upTo: GlobalPosition | null;
  /** Its events that have begun and not ended: those past the checkpoint, and dead letters with the events that wait behind them. */
  readonly underWay: number;
  /** Whether its declaration is needed: for events to come, or for those that have not ended. */
  readonly isNeeded: boolean;
}

/** The versions of all reactors that have begun, by the reactor's name, the lowest first. Events under way are counted up to `upTo`. @default all */
export async function readReactorVersions(
  db: Queryable,
  upTo: number | null = null,
): Promise<ReadonlyMap<string, readonly ReactorVersionStatus[]>> {
  const progress = Map.groupBy(await readVersionProgress(db, upTo), ({ reactor }) => reactor);
  return new Map([...progress].map(([name, versions]) => [name, versions.map(statusOf)]));
}

function statusOf({ version, after, upTo, underWay, checkpoint }: VersionProgress): ReactorVersionStatus {
  const hasEventsLeft = upTo === null || (checkpoint < upTo && after < upTo);
  return { version, after, upTo, underWay, isNeeded: hasEventsLeft || underWay > 0 };
}

/** A version that has begun, and that a program does not declare although it declares the reactor. */
export interface UndeclaredVersion {
  /** Whether the reactor will stop, or has dead letters that can't be retried. Otherwise it only may, if a process ends at a bad moment. */
  readonly isMissed: boolean;
  /** What is missing, and what to do. */
  readonly message: string;
}

/** The versions that are needed, and that these declarations lack. */
export async function findUndeclaredVersions(
  db: Queryable,
  reactors: readonly Reactor[],
): Promise<readonly UndeclaredVersion[]> {
  if (reactors.length === 0) return [];
  const begun = await readReactorVersions(db);
  return versionedReactors(reactors).flatMap((reactor) =>
    (begun.get(reactor.name) ?? [])
      .filter(({ version }) => reactor.versions.every((declared) => declared.version !== version))
      .flatMap((version) => undeclared(reactor, version) ?? []),
  );
}

function undeclared(reactor: VersionedReactor, found: ReactorVersionStatus): UndeclaredVersion | undefined {
  const { name } = reactor;
  const { version, after, upTo, underWay, isNeeded } = found;
  const waits = 'and this program does not declare it: they wait for a program that does.';
  if (upTo === null && version > newestOf(reactor).version)
    return {
      isMissed: true,
      message: `${name}@${version} handles the events after position ${after}, ${waits} If that one is taken back for good: 'refold reactor withdraw ${name} ${version}'.`,
    };
  if (underWay === 0 && (upTo === null || !isNeeded)) return undefined;
  const count = underWay === 1 ? '1 event' : `${underWay} events`;
  const events = underWay > 0 ? `has ${count} under way` : `has events up to position ${upTo} to handle`;
  const wayOut = `Declare version ${version} beside the newer one until 'refold reactor list' shows that it is not needed.`;
  return { isMissed: upTo !== null, message: `${name}@${version} ${events}, ${waits} ${wayOut}` };
}
