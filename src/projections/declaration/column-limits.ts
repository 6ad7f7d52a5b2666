import type { Column, Columns } from '../columns/column.ts';
import { textLimits } from '../columns/text-limits.ts';
import type { Projection } from './projection.ts';

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
