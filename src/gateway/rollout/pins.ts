import { RefoldError } from '../../errors.ts';
import type { Pins, VersionMap } from '../../projections/projection/version-map.ts';

export const noPins: Pins = new Map();
// More than the projections of an application that changed lately.
const maxPins = 20;

/** Parses the header `refold-pin: cart_summary@1, customer_profile@2`. @throws RefoldError `BAD_USER_INPUT` */
export function pinsOf(header: string | undefined): Pins {
  if (header === undefined) return noPins;
  const pins = header.split(',').map((pin) => /^([a-z][a-z0-9_]*)@([1-9]\d{0,3})$/.exec(pin.trim()));
  if (pins.length > maxPins) throw badPin(`at most ${maxPins} versions`);
  const parsed = new Map<string, number>();
  for (const pin of pins) {
    const [, name, version] = pin ?? [];
    if (name === undefined || version === undefined) throw badPin("versions such as 'cart_summary@1'");
    if (parsed.has(name)) throw badPin(`one version of '${name}'`);
    parsed.set(name, Number(version));
  }
  return parsed;
}

/**
 * Returns `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) with the earliest time among the versions that the response may come from, and
 * the list of these versions.
 */
export function deprecationHeaders({ deprecated = [] }: VersionMap): readonly (readonly [string, string])[] {
  if (deprecated.length === 0) return [];
  const since = Math.min(...deprecated.map((version) => version.since.getTime()));
  const sunsets = deprecated.flatMap(({ sunset }) => (sunset ? [sunset.getTime()] : []));
  return [
    ['deprecation', `@${Math.floor(since / 1000)}`],
    ...(sunsets.length > 0 ? [['sunset', new Date(Math.min(...sunsets)).toUTCString()] as const] : []),
    ['refold-deprecated', deprecated.map(({ id }) => id).join(', ')],
  ];
}

function badPin(expected: string): RefoldError {
  return new RefoldError('BAD_USER_INPUT', `The header 'refold-pin' names ${expected}, separated by commas.`);
}
