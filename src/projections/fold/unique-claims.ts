import type { Row, RowCodec } from '../columns/row-codec.ts';

/** Values of one unique index that were taken and released again between two writes. */
export interface PassingValues {
  readonly columns: readonly string[];
  /** Rows with these values. */
  readonly rows: readonly Row[];
}

/**
 * Tracks which rows take and release unique values between two writes. A batch is written at once, so PostgreSQL checks only the final
 * rows: it does not notice a row that shared a value with another row in between. Folding event by event would refuse that row. To refuse
 * the same rows at any batch size, this finds possible conflicts, and the caller splits such a batch.
 */
export interface UniqueClaims {
  changed(text: string, before: Row | null, after: Row | null): void;
  /** Whether two rows had a value at the same time. */
  readonly clash: boolean;
  /** Values that the table must not contain: they were taken while no known row had them. */
  passing(): readonly PassingValues[];
  /** Call it when everything is written or discarded. */
  clear(): void;
}

interface Claim {
  /** The key text of the row that has the value; null if no row has it. */
  holder: string | null;
  /** True if no known row had the value when it was first taken. The table may still contain it. */
  readonly unproven: boolean;
  /** A row with the value. */
  readonly row: Row;
  givenUp: boolean;
}

/** Undefined if no column is unique. */
export function createUniqueClaims(codec: RowCodec, indexes: readonly (readonly string[])[]): UniqueClaims | undefined {
  if (indexes.length === 0) return undefined;
  const watched = indexes.map((columns) => ({ columns, claims: new Map<string, Claim>() }));
  let clash = false;

  const textOf = (columns: readonly string[], row: Row | null): string | null => {
    if (row === null || columns.some((name) => row[name] === null)) return null; // nulls are never equal
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
    // Another row took the value while this row still had it. This row was not known to have it.
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
