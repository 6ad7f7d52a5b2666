import type { ObjectRef } from '@pothos/core';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { Builder, Types } from '../builder/builder.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { globalId } from '../values/global-id.ts';
import { type ColumnField, implement } from './column-types.ts';

/** `CartSummaryKey`: identifies a row that may be removed. */
export function keyTypeOf(
  builder: Builder,
  names: TypeNames,
  projection: Projection,
  fields: readonly ColumnField[],
): ObjectRef<Types, Row> {
  const { graphql, id, keyColumns } = projection;
  const key = implement(
    builder,
    names.claim(`${graphql.type}Key`, id),
    fields.filter((field) => keyColumns.includes(field.name)),
    'The key of a row.',
  );
  if (graphql.globalId)
    builder.objectField(key, 'id', (t) =>
      t.id({ description: 'The `id` of the row.', resolve: (values) => globalId(projection, values) }),
    );
  return key;
}

/** Converts a key to the value of a {@link keyTypeOf} type. */
export function keyRow({ keyColumns }: Projection, values: RowKey): Row {
  return Object.fromEntries(keyColumns.map((name, index) => [name, values[index]]));
}
