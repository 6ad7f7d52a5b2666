import { type EventFamily, payloadVersion as newestVersion } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';

/** What events of one type and payload version have in common. The names are the declared ones. */
export interface EventKind {
  readonly family: string;
  readonly type: string;
  readonly payloadVersion: number;
  /** The family that must read the payload; undefined if it is stored in the newest version. */
  readonly readBy: EventFamily | undefined;
}

/** The kinds of events seen so far. Bounded by the declared types and payload versions, because only declared types are read. */
export interface EventKinds {
  /** Finds the kind by the bytes of a copied row's payload version, family and type. */
  find(bytes: Buffer, from: number, to: number): EventKind;
}

interface KnownKind extends EventKind {
  readonly bytes: Buffer;
}

/** Looks up kinds by their bytes. Creating a string for each event, to look it up, takes several times as long. */
export function createKinds(families: ReadonlyMap<string, EventFamily>): EventKinds {
  const known = new Map<number, KnownKind[]>();
  return {
    find(bytes, from, to) {
      // All kinds in one bucket have the same length.
      const place = ((to - from) << 16) | ((bytes[to - 1] ?? 0) << 8) | (bytes[to - 4] ?? 0);
      let kinds = known.get(place);
      if (!kinds) {
        kinds = [];
        known.set(place, kinds);
      }
      for (const kind of kinds) if (isAt(bytes, from, kind.bytes)) return kind;
      const made = makeKind(families, Buffer.from(bytes.subarray(from, to)));
      kinds.push(made);
      return made;
    },
  };
}

function isAt(bytes: Buffer, from: number, expected: Buffer): boolean {
  for (let index = 0; index < expected.length; index++) if (bytes[from + index] !== expected[index]) return false;
  return true;
}

function makeKind(families: ReadonlyMap<string, EventFamily>, bytes: Buffer): KnownKind {
  const [version, name, storedType] = bytes.toString('latin1').split('\t') as [string, string, string]; // three ASCII columns
  const payloadVersion = Number(version);
  const family = familyStoredAs(families, name);
  const type = family?.declaredTypes[storedType] ?? storedType;
  const readBy = family && payloadVersion !== newestVersion(family, type) ? family : undefined;
  return { family: family?.name ?? name, type, payloadVersion, readBy, bytes };
}
