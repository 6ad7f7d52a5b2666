import type { Column } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { placeOf } from '../../projections/columns/text-limits.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Cursor, RowOrder } from '../../projections/queries/row-query.ts';
import { badInput, canonicalInput } from './canonical-input.ts';
import { opaqueText, readOpaqueText } from './opaque-text.ts';

/**
 * Encodes cursors of one list in one order: the name of the order, then the values of its columns and of the key, as base64url of JSON. A
 * cursor is a place, not a row: it stays valid if the row is removed, and in the next version of the projection.
 */
export interface CursorCodec {
  encode(row: Row): string;
  /** @throws RefoldError `BAD_USER_INPUT` for a cursor of another list or order, or one that Refold did not create. */
  decode(text: string, argument: string): Cursor;
}

export function cursorCodec(projection: Projection, orderBy: readonly RowOrder[]): CursorCodec {
  const columns = [...orderBy.map((order) => order.column), ...projection.keyColumns];
  const order = orderName(projection, orderBy);

  return {
    encode(row) {
      const values = columns.map(
        (name) => projection.codec.encodeValue(name, placeOf(projection.columns[name] as Column, row[name])), // columns of the projection
      );
      return opaqueText([order, ...values]);
    },
    decode(text, argument) {
      const refusal = (cause?: unknown) =>
        badInput(
          `'${argument}' is not a cursor of this list in this order. Use one from a page of the same list with the same 'orderBy'.`,
          { cause },
        );
      const parsed = readOpaqueText(text);
      if (!Array.isArray(parsed) || parsed[0] !== order || parsed.length !== columns.length + 1) throw refusal();
      try {
        return columns.map((name, index) =>
          canonicalInput(projection.columns[name] as Column, name, parsed[index + 1]),
        ); // columns of the projection
      } catch (cause) {
        throw refusal(cause);
      }
    },
  };
}

/** The prefix of the list's cursors in this order. */
export function orderName(projection: Projection, orderBy: readonly RowOrder[]): string {
  return [
    projection.name,
    ...orderBy.map(({ column, direction, nulls }) => `${column} ${direction} ${nulls}`),
    ...projection.keyColumns,
  ].join(', ');
}
