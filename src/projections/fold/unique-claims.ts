import type { Row, RowCodec } from '../columns/row-codec.ts';

/** Values that were taken and given up again between two writes, of one unique index. */
export interface PassingValues {
  readonly columns: readonly string[];
  /** Rows with these values in those columns. */
  readonly rows: readonly Row[];
}

/**
 * Watches who takes and gives up unique values between two writes. Written at once, rows are only judged as they are in the end, and
 * one that had somebody else's value in between is not noticed; event by event it is refused. So that the same rows are refused in
 * batches of any size, what could differ is looked for here, and a batch that it is found in is divided.
 */
export interface UniqueClaims {
  changed(text: string, before: Row | null, after: Row | null): void;
  /** Whether a value was seen with two rows at the same time. */
  readonly clash: boolean;
  /** What the table must not hold: nobody was known to have these values when they were taken. */
  passing(): readonly PassingValues[];
  /** Everything is written, or forgotten. */
  clear(): void;
}

interface Claim {
  /** Who has the value now, as the text of the key; null where nobody has. */
  holder: string | null;
  /** Whether the first to take it found nobody known to have it: the table may know better. */
  readonly unproven: boolean;
  /** A row with the value. */
  readonly row: Row;
  givenUp: boolean;
}

/** Undefined where no column is unique: then there is nothing to watch. */
export function createUniqueClaims(codec: RowCodec, indexes: readonly (readonly string[])[]): UniqueClaims | undefined {
  if (indexes.length === 0) return undefined;
  const watched = indexes.map((columns) => ({ columns, claims: new Map<string, Claim>() }));
  let clash = false;

  const textOf = (columns: readonly string[], row: Row | null): string | null => {
    if (row === null || columns.some((name) => row[name] === null)) return null; // nulls are never the same
    const [only] = columns;
    if (columns.length === 1 && only !== undefined && typeof row[only] === 'string') return row[only];
    return JSON.stringify(columns.map((name) => codec.encodeValue(name, row[name])));
  };

  function giveUp(claims: Map<string, Claim>, value: string, text: string, row: Row): void {
    const claim = claims.get(value);
    if (!claim) {
      claims.set(value, { holder: null, unproven: false, row, givenUp: true });
      return;
    }
    // Somebody took it while this row, which was not known to have it, still did.
    if (claim.holder !== text) clash = true;
    claim.holder = null;
    claim.givenUp = true;
  }

  function take(claims: Map<string, Claim>, value: string, text: string, row: Row): void {
    const claim = claims.get(value);
    if (!claim) {
      claims.set(value, { holder: text, unproven: true, row, givenUp: false });
      return;
    }
    if (claim.holder !== null && claim.holder !== text) clash = true;
    claim.holder = text;
  }

  return {
    changed(text, before, after) {
      for (const { columns, claims } of watched) {
        const old = textOf(columns, before);
        const value = textOf(columns, after);
        if (old === value) continue;
        if (old !== null && before) giveUp(claims, old, text, before);
        if (value !== null && after) take(claims, value, text, after);
      }
    },
    get clash() {
      return clash;
    },
    passing: () =>
      watched
        .map(({ columns, claims }) => ({
          columns,
          rows: [...claims.values()].filter(({ unproven, givenUp }) => unproven && givenUp).map(({ row }) => row),
        }))
        .filter(({ rows }) => rows.length > 0),
    clear() {
      clash = false;
      for (const { claims } of watched) claims.clear();
    },
  };
}
