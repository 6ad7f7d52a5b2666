import type { RefoldError } from '../../errors.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { lastingFilter } from '../../events/event-names.ts';
import { knownVersion, type PayloadVersions } from '../../events/payload-versions.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { OtherProcess } from '../../store/ownership/processes.ts';

/**
 * Whether another process can read more of the unit's events than this one: it knows each payload version that this process knows, and a
 * higher one of some type. That process should own the unit, before this one meets an event that it can't read.
 *
 * @param filter the unit's event types, under the names that appends write
 */
export function isReadBetter(
  unit: string,
  filter: readonly EventFilter[],
  own: PayloadVersions,
  others: readonly OtherProcess[],
): boolean {
  return others.some(({ declares, payloadVersions }) => {
    if (!declares.includes(unit)) return false;
    const gains = filter.flatMap(({ family, types }) =>
      types.map((type) => knownVersion(payloadVersions, family, type) - knownVersion(own, family, type)),
    );
    return gains.every((gain) => gain >= 0) && gains.some((gain) => gain > 0);
  });
}

/**
 * Whether another process that declares the unit knows the payload version that this one does not.
 *
 * @param families those that this process declares: the other may know the type by another name
 */
export function isKnownElsewhere(
  unit: string,
  { fields }: RefoldError<'PAYLOAD_VERSION_UNKNOWN'>,
  families: readonly EventFamily[],
  others: readonly OtherProcess[],
): boolean {
  const unread = lastingFilter(families, [{ family: String(fields.family), types: [String(fields.type)] }]);
  const knows = (payloadVersions: PayloadVersions) =>
    unread.every(({ family, types }) =>
      types.every((type) => knownVersion(payloadVersions, family, type) >= Number(fields.payloadVersion)),
    );
  return others.some(({ declares, payloadVersions }) => declares.includes(unit) && knows(payloadVersions));
}
