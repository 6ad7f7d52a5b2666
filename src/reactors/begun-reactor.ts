import { RefoldError } from '../errors.ts';
import { type GlobalPosition, laterPosition } from '../events/global-position.ts';
import type { Reactor } from './reactor.ts';
import type { VersionedReactor } from './versioned-reactor.ts';

/** A version of a reactor that has begun. It handles the events after a position, up to the one after which the next version begins. */
export interface BegunVersion {
  readonly version: number;
  readonly after: GlobalPosition;
}

/** A reactor whose versions have begun, the newest declared one among them. So it is known which version handles which event. */
export interface BegunReactor extends VersionedReactor {
  /**
   * The declaration that handles the event at a position: for ever, whenever it is handled, also after a rewind or as a dead letter. Undefined
   * if this program does not declare that version.
   */
  at(position: GlobalPosition): Reactor | undefined;
  /** Where a version begins; undefined if it has not begun. */
  beginOf(version: number): GlobalPosition | undefined;
  /** Why this program can't handle the event at a position: it does not declare the version. */
  unknownAt(position: GlobalPosition): RefoldError<'REACTOR_VERSION_UNKNOWN'>;
  /** Up to where this program declares all versions that the events after the checkpoint need. Undefined if there is no end. */
  endAfter(checkpoint: GlobalPosition): VersionsEnd | undefined;
}

export interface VersionsEnd {
  readonly position: GlobalPosition;
  /** Why this program can't handle the events after the position. */
  readonly error: RefoldError<'REACTOR_VERSION_UNKNOWN'>;
}

/** @param begun the lowest version first; it begins after position 0 */
export function begunReactor(reactor: VersionedReactor, begun: readonly BegunVersion[]): BegunReactor {
  const declared = new Map(reactor.versions.map((one) => [one.version, one]));
  const unknown = ({ version, after }: BegunVersion) =>
    versionUnknown(reactor.name, version, after, upToOf(begun, version));
  return {
    ...reactor,
    at: (position) => declared.get(begunAt(begun, position).version),
    beginOf: (version) => begun.find((one) => one.version === version)?.after,
    unknownAt: (position) => unknown(begunAt(begun, position)),
    endAfter(checkpoint) {
      for (const one of begun) {
        const upTo = upToOf(begun, one.version);
        if (declared.has(one.version) || (upTo !== undefined && (upTo <= checkpoint || upTo === one.after))) continue;
        return { position: laterPosition(one.after, checkpoint), error: unknown(one) };
      }
      return undefined;
    },
  };
}

/** The version that handles the event at a position: the highest one that begins before it. */
function begunAt(begun: readonly BegunVersion[], position: GlobalPosition): BegunVersion {
  return begun.findLast(({ after }) => after < position) as BegunVersion; // the first begins after 0
}

/** The last position that a version handles; undefined for the newest one. */
function upToOf(begun: readonly BegunVersion[], version: number): GlobalPosition | undefined {
  return begun.find((other) => other.version > version)?.after;
}

function versionUnknown(
  reactor: string,
  version: number,
  after: GlobalPosition,
  upTo: GlobalPosition | undefined,
): RefoldError<'REACTOR_VERSION_UNKNOWN'> {
  const range =
    upTo === undefined
      ? `after position ${after}`
      : after === 0n
        ? `up to position ${upTo}`
        : `at positions ${after + 1n} to ${upTo}`;
  return new RefoldError(
    'REACTOR_VERSION_UNKNOWN',
    `${reactor}@${version} handles the events ${range}, and this process does not declare it.`,
    { reactor, version, position: after.toString(), upTo: upTo === undefined ? null : upTo.toString() },
  );
}
