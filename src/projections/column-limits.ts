import type { Column, Columns } from './column.ts';
import type { Projection } from './projection.ts';
import { uniqueIndexes } from './unique-claims.ts';

/** What a column holds, for the schema of an input that ends up in it. */
export interface ColumnLimit {
  /** Of a text in an index: bytes in UTF-8 (`Buffer.byteLength(text)`). */
  readonly maxBytes?: number;
  /** Of an integer. */
  readonly min?: number;
  readonly max?: number;
  /** Of a decimal: digits in all, and after the point. */
  readonly precision?: number;
  readonly scale?: number;
}

// A third of a page is what an entry of an index holds, with its header.
const longestEntry = 2704 - 16;
// A length and what aligns the next value.
const aroundValue = 8;
/** No index takes a longer text, whatever else is in it. */
export const longestIndexedText = 1024;

/**
 * What the columns of a projection hold. A value beyond is refused when the event is folded, so a command is better refused before.
 *
 * @example
 * const { tracking } = columnLimits(parcelV1);
 * const input = z.object({
 *   tracking: z.string().refine((text) => Buffer.byteLength(text) <= tracking.maxBytes, 'is too long'),
 * });
 */
export function columnLimits<Name extends string, C extends Columns>(
  projection: Projection<Name, C>,
): { readonly [N in keyof C & string]: ColumnLimitOf<C[N]> } {
  const texts = textLimits(projection.columns, projection.keyColumns);
  const limits = Object.entries(projection.columns).map(([name, column]) => [name, limitOf(column, texts[name])]);
  return Object.freeze(Object.fromEntries(limits)); // one of each column
}

/** Every column may have each of them; which it has follows from its kind and its indexes. */
type ColumnLimitOf<C> = C extends Column ? ColumnLimit : never;

function limitOf({ type }: Column, maxBytes: number | undefined): ColumnLimit {
  switch (type.kind) {
    case 'text':
      return maxBytes === undefined ? {} : { maxBytes };
    case 'integer':
      return { min: -2_147_483_648, max: 2_147_483_647 };
    case 'decimal':
      return { precision: type.precision, scale: type.scale };
    default:
      return {};
  }
}

/**
 * How many bytes the texts hold that are in an index, so that no entry is longer than PostgreSQL takes. A text is 1,024 bytes at most, and less
 * where several share an entry: the key's columns are in each index of the table. Indexes for parts of texts and for JSON hold no whole values.
 */
export function textLimits(columns: Columns, keyColumns: readonly string[]): Readonly<Record<string, number>> {
  const sorted = Object.keys(columns).filter((name) => columns[name]?.flags.index && !columns[name]?.flags.unique);
  const indexes = [
    keyColumns,
    ...sorted.map((name) => [...new Set([name, ...keyColumns])]),
    ...uniqueIndexes(columns, keyColumns),
  ];
  const limits: Record<string, number> = {};
  for (const names of indexes) {
    const texts = names.filter((name) => columns[name]?.type.kind === 'text');
    const others = names.reduce((sum, name) => sum + sizeOf(columns[name]), 0);
    const each = Math.floor((longestEntry - others) / Math.max(1, texts.length)) - aroundValue;
    for (const name of texts) limits[name] = Math.min(limits[name] ?? longestIndexedText, each);
  }
  return limits;
}

/** What a value that is no text takes at most. */
function sizeOf(column: Column | undefined): number {
  switch (column?.type.kind) {
    case 'enum':
      return Math.max(...column.type.values.map((value) => value.length)) + aroundValue;
    case 'decimal':
      // Two bytes for four digits, on both sides of the point.
      return Math.ceil(column.type.precision / 2) + 2 * aroundValue;
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'timestamptz':
      return 16 + aroundValue;
    default:
      return 0; // texts, and what has an index of another kind
  }
}
