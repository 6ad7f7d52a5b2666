import type { EventFamily } from './event-family.ts';
import { payloadVersion } from './event-family.ts';

/**
 * The payload versions that a program knows, by family and type, under all names that the log may hold: programs from before and after a rename
 * compare what they know. It lists only types above version 1.
 */
export type PayloadVersions = Readonly<Record<string, Readonly<Record<string, number>>>>;

export function payloadVersionsOf(families: readonly EventFamily[]): PayloadVersions {
  const versions: Record<string, Record<string, number>> = {};
  for (const family of families) {
    for (const [stored, type] of Object.entries(family.declaredTypes)) {
      const version = payloadVersion(family, type);
      if (version > 1) versions[family.storedName] = { ...versions[family.storedName], [stored]: version };
    }
  }
  return versions;
}

/** The highest payload version of a type that is known. @param family its name in the log, as `type` is */
export function knownVersion(versions: PayloadVersions, family: string, type: string): number {
  const types = Object.hasOwn(versions, family) ? versions[family] : undefined;
  return (types && Object.hasOwn(types, type) ? types[type] : undefined) ?? 1;
}
