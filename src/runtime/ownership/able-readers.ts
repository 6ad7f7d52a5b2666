import { RefoldError } from '../../errors.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { lastingFilter } from '../../events/event-names.ts';
import { knownVersion, type PayloadVersions } from '../../events/payload-versions.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import { versionsOf } from '../../reactors/versioned-reactor.ts';
import type { KnownVersions, OtherProcess } from '../../store/ownership/processes.ts';
import { type ProcessorUnit, unitText } from '../../store/server/processor-unit.ts';

/** What a process can own: a unit, and the event types that it reads. */
export interface ReadUnit {
  readonly unit: ProcessorUnit;
  /** Under the names that appends write. */
  readonly filter: readonly EventFilter[];
}

/**
 * Whether another process can handle more of the unit's events than this one: it knows each payload version and each version of the reactor
 * that this process knows, and more. That process should own the unit, before this one meets an event that it can't handle.
 */
export function isReadBetter(read: ReadUnit, own: KnownVersions, others: readonly OtherProcess[]): boolean {
  const name = unitText(read.unit);
  return others.some((other) => {
    if (!other.declares.includes(name)) return false;
    const gains = [...payloadGains(read, own, other), ...reactorGains(read, own, other)];
    return gains.every((gain) => gain >= 0) && gains.some((gain) => gain > 0);
  });
}

/** A version that a process lacks. Another process may have it. */
export type UnknownVersion = RefoldError<'PAYLOAD_VERSION_UNKNOWN' | 'REACTOR_VERSION_UNKNOWN'>;

export function isUnknownVersion(error: unknown): error is UnknownVersion {
  return (
    error instanceof RefoldError &&
    (error.code === 'PAYLOAD_VERSION_UNKNOWN' || error.code === 'REACTOR_VERSION_UNKNOWN')
  );
}

/**
 * Whether another process that declares the unit knows the version that this one does not.
 *
 * @param families those that this process declares: the other may know the type by another name
 */
export function isKnownElsewhere(
  unit: ProcessorUnit,
  { code, fields }: UnknownVersion,
  families: readonly EventFamily[],
  others: readonly OtherProcess[],
): boolean {
  const reads = (payloadVersions: PayloadVersions) =>
    lastingFilter(families, [{ family: String(fields.family), types: [String(fields.type)] }]).every(
      ({ family, types }) =>
        types.every((type) => knownVersion(payloadVersions, family, type) >= Number(fields.payloadVersion)),
    );
  return others.some(
    ({ declares, payloadVersions, reactorVersions }) =>
      declares.includes(unitText(unit)) &&
      (code === 'PAYLOAD_VERSION_UNKNOWN'
        ? reads(payloadVersions)
        : versionsOf(reactorVersions, unit.name).includes(Number(fields.version))),
  );
}

/** The error if no running process knows the version, with the way out. */
export function knownNowhere(id: string, { code, message, fields }: UnknownVersion): UnknownVersion {
  const { reactor, version, upTo } = fields;
  const elsewhere =
    code === 'PAYLOAD_VERSION_UNKNOWN'
      ? `No running process that declares ${id} knows it: deploy one.`
      : upTo === null
        ? `No running process does: deploy one. If it is taken back for good: 'refold reactor withdraw ${reactor} ${version}'.`
        : `No running process does: deploy one, or leave those events out with 'refold reactor skip ${reactor} ${upTo}'.`;
  return new RefoldError(code, `${message} ${elsewhere}`, fields);
}

function payloadGains({ filter }: ReadUnit, own: KnownVersions, other: KnownVersions): readonly number[] {
  return filter.flatMap(({ family, types }) =>
    types.map(
      (type) => knownVersion(other.payloadVersions, family, type) - knownVersion(own.payloadVersions, family, type),
    ),
  );
}

function reactorGains({ unit }: ReadUnit, own: KnownVersions, other: KnownVersions): readonly number[] {
  if (unit.kind !== 'reactor') return [];
  const [mine, theirs] = [versionsOf(own.reactorVersions, unit.name), versionsOf(other.reactorVersions, unit.name)];
  return [...new Set([...mine, ...theirs])].map(
    (version) => Number(theirs.includes(version)) - Number(mine.includes(version)),
  );
}
