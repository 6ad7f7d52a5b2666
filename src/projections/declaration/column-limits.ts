import type { Column, Columns } from '../columns/column.ts';
import { textLimits } from '../columns/text-limits.ts';
import type { Projection } from './projection.ts';

/** The limits of a column, for the schema of an input that is stored in it. */
export interface ColumnLimit {
  /** For an indexed text: the maximum of bytes in UTF-8 (`Buffer.byteLength(text)`). */
  readonly maxBytes?: number;
  /** For an integer. */
  readonly min?: number;
  readonly max?: number;
  /** For a decimal: the total number of digits, and the digits after the point. */
  readonly precision?: number;
  readonly scale?: number;
}

/**
 * The limits of a projection's columns. A value beyond them is refused when the event is folded, so validate it in the command.
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
  return Object.freeze(Object.fromEntries(limits)); // one entry for each column
}

/** The type allows every limit for every column. The actual ones depend on the column's kind and indexes. */
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
