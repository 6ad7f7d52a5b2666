import type { Column, Columns } from '../columns/column.ts';
import { textLimits } from '../columns/text-limits.ts';
import { type ColumnLimit, kindCodec } from '../columns/value-codec.ts';
import type { Projection } from '../projection/projection.ts';

/**
 * The limits of a projection's columns. A longer text refuses its command with `TEXT_TOO_LONG`; other values beyond the limits are refused when
 * the event is folded. So validate them in the input of the command.
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

function limitOf(column: Column, maxBytes: number | undefined): ColumnLimit {
  return kindCodec(column).limit ?? (maxBytes === undefined ? {} : { maxBytes });
}
