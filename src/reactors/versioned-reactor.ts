import { invalidDeclaration } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFilter } from '../projections/projection/projection.ts';
import type { Reactor } from './reactor.ts';

/** A reactor with all its declared versions. They share its checkpoint, its owner and its dead letters. */
export interface VersionedReactor extends Pick<Reactor, 'name' | 'from' | 'concurrency'> {
  /** The event types that any of the versions handles or awaits. */
  readonly filter: readonly EventFilter[];
  /** Those that any of them handles. */
  readonly handled: readonly EventFilter[];
  /** The event types that handlers wait for, as {@link awaitedName} names them. */
  readonly awaits: readonly string[];
  /** The lowest first. */
  readonly versions: readonly Reactor[];
}

/** The versions that a program declares, by the name of the reactor. It lists no reactor that has version 1 only. */
export type ReactorVersions = Readonly<Record<string, readonly number[]>>;

/** The declared reactors, each once. */
export function versionedReactors(reactors: readonly Reactor[]): readonly VersionedReactor[] {
  return [...Map.groupBy(reactors, ({ name }) => name)].map(([name, declared]) => {
    const versions = declared.toSorted((a, b) => a.version - b.version);
    const { from, concurrency } = newestOf({ versions });
    const filter = unionOf(versions.flatMap((version) => version.filter));
    const handled = unionOf(versions.flatMap((version) => version.handled));
    const awaits = versions.flatMap((version) =>
      [...version.awaits.values()].map((type) => awaitedName(version, type)),
    );
    return { name, from, concurrency, filter, handled, awaits, versions };
  });
}

/** The name under which events of a stored type are kept for the handlers of a version: each version may compute other keys. */
export function awaitedName({ version }: Pick<Reactor, 'version'>, storedType: string): string {
  return version === 1 ? storedType : `${storedType}@${version}`;
}

/** The highest declared version. */
export function newestOf({ versions }: Pick<VersionedReactor, 'versions'>): Reactor {
  return versions.at(-1) as Reactor; // at least one is declared
}

export function declaredVersions(reactors: readonly Reactor[]): ReactorVersions {
  return Object.fromEntries(
    versionedReactors(reactors)
      .map(({ name, versions }) => [name, versions.map(({ version }) => version)] as const)
      .filter(([, versions]) => versions.length > 1 || !versions.includes(1)),
  );
}

/** The versions of a reactor that a program declares, if it declares the reactor. */
export function versionsOf(declared: ReactorVersions, reactor: string): readonly number[] {
  return (Object.hasOwn(declared, reactor) ? declared[reactor] : undefined) ?? [1];
}

/** Whether the reactor handles events of this type. */
export function handlesType({ handled }: Pick<Reactor, 'handled'>, { family, type }: RecordedEvent): boolean {
  return handled.some((entry) => entry.family === family && entry.types.includes(type));
}

/** Checks that the versions of each reactor fit together. @throws RefoldError `INVALID_DECLARATION` */
export function checkReactorVersions(reactors: readonly Reactor[]): void {
  for (const { name, versions } of versionedReactors(reactors)) {
    const subject = `defineReactor('${name}')`;
    for (const [place, one] of versions.entries()) {
      const before = versions[place - 1];
      if (!before) continue;
      if (before.version === one.version)
        throw invalidDeclaration(subject, 'is declared twice. Give one of them another name, or the next version.');
      for (const option of ['from', 'concurrency'] as const) {
        if (before[option] === one[option]) continue;
        const found = `version ${before.version} has ${before[option]}, version ${one.version} has ${one[option]}`;
        const problem = `'${option}' belongs to the reactor, so all its versions declare the same; ${found}.`;
        throw invalidDeclaration(subject, problem);
      }
    }
  }
}

function unionOf(all: readonly EventFilter[]): readonly EventFilter[] {
  return [...Map.groupBy(all, ({ family }) => family)].map(([family, filters]) => ({
    family,
    types: [...new Set(filters.flatMap(({ types }) => types))],
  }));
}
