import type { InputRef } from '@pothos/core';
import type { Projection } from '../../projections/projection/projection.ts';
import type { RowOrder } from '../../projections/queries/row-query.ts';
import type { AnyInput, Builder } from '../builder/builder.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { indexedColumns } from './filter-types.ts';

/** One entry of `orderBy` as GraphQL passes it: exactly one column, with its direction. */
export type OrderInput = Readonly<Record<string, unknown>>;

export interface OrderTypes {
  /**
   * Returns the input type of a projection's `orderBy` entries: `{ totalAmount: DESC }`.
   *
   * It is an object with one key, not an enum such as `TOTAL_AMOUNT_DESC`. So a table header can build it from the column's name, and the
   * placement of nulls does not need an enum value for every combination. `@oneOf` makes a second key an error, because its order would be
   * unclear.
   */
  orderOf(projection: Projection, owner: string): InputRef<OrderInput>;
  /** `ASC` or `DESC`. */
  direction(): AnyInput;
}

export function createOrderTypes(builder: Builder, names: TypeNames): OrderTypes {
  let plain: AnyInput | undefined;
  let nullable: AnyInput | undefined;
  const direction = () => {
    plain ??= builder.enumType('SortDirection', {
      description: 'The direction of an order.',
      values: {
        ASC: { description: 'Ascending: the smallest value first.' },
        DESC: { description: 'Descending: the largest value first.' },
      },
    });
    return plain;
  };
  const nullableDirection = () => {
    nullable ??= builder.enumType('NullableSortDirection', {
      description:
        'The direction of an order, with the place of nulls. ASC and DESC are the fastest, because indexes have their order: nulls are last in ASC and first in DESC.',
      values: Object.fromEntries(
        Object.entries(directions).map(([name, { direction, nulls }]) => [
          name,
          { description: `${direction === 'asc' ? 'Ascending' : 'Descending'}, nulls ${nulls}.` },
        ]),
      ),
    });
    return nullable;
  };

  return {
    direction,
    orderOf(projection, owner) {
      const columns = indexedColumns(projection).map(
        ([name, column]) => [name, column.flags.nullable ? nullableDirection() : direction()] as const,
      );
      const ref = builder.inputType(names.claim(`${projection.graphql.type}Order`, owner), {
        isOneOf: true,
        description: `Orders \`${projection.graphql.type}\` rows by one column.`,
        fields: (t) =>
          Object.fromEntries(
            columns.map(([name, type]) => [name, t.field({ type, required: false, description: `By \`${name}\`.` })]),
          ),
      });
      return ref as InputRef<OrderInput>; // an object of the fields above
    },
  };
}

const directions: Readonly<Record<string, Omit<RowOrder, 'column'>>> = {
  ASC: { direction: 'asc', nulls: 'last' },
  DESC: { direction: 'desc', nulls: 'first' },
  ASC_NULLS_FIRST: { direction: 'asc', nulls: 'first' },
  ASC_NULLS_LAST: { direction: 'asc', nulls: 'last' },
  DESC_NULLS_FIRST: { direction: 'desc', nulls: 'first' },
  DESC_NULLS_LAST: { direction: 'desc', nulls: 'last' },
};

export const directionNames: readonly string[] = Object.keys(directions);

/** Parses an `orderBy`. A repeated column is ignored: it cannot change the order. */
export function rowOrder(orderBy: readonly OrderInput[] | null | undefined): readonly RowOrder[] {
  const orders = new Map<string, RowOrder>();
  for (const entry of orderBy ?? []) {
    for (const [column, direction] of Object.entries(entry)) {
      const order = directions[direction as string]; // a value of one of the enums
      if (order && !orders.has(column)) orders.set(column, { column, ...order });
    }
  }
  return [...orders.values()];
}
