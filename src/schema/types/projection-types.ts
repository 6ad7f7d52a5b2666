import type { InputRef, ObjectRef } from '@pothos/core';
import type { Row } from '../../projections/columns/row-codec.ts';
import { type Projection, partialText } from '../../projections/projection/projection.ts';
import type { ServedVersion } from '../../projections/projection/version-map.ts';
import type { AnyInput, Builder, Types } from '../builder/builder.ts';
import { idColumns } from '../builder/ids.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { type AggregateInputs, createAggregateInputs } from './aggregate-inputs.ts';
import { type AggregateTypes, createAggregateTypes } from './aggregate-types.ts';
import { type ColumnField, createColumnTypes, implement } from './column-types.ts';
import { type ConnectionTypes, connectionOf } from './connection.ts';
import { createFilterTypes, type WhereInput } from './filter-types.ts';
import { keyTypeOf } from './key-type.ts';
import { createOrderTypes, type OrderInput } from './order.ts';

/** The GraphQL types of one served version. */
export interface ProjectionTypes {
  readonly served: ServedVersion;
  readonly projection: Projection;
  readonly row: ObjectRef<Types, Row>;
  readonly key: ObjectRef<Types, Row>;
  readonly fields: readonly ColumnField[];
  readonly where: InputRef<WhereInput>;
  readonly orderBy: InputRef<OrderInput>;
  readonly connection: ConnectionTypes['connection'];
  readonly aggregates: AggregateTypes & AggregateInputs;
  /** The arguments that identify one row, by key column. */
  readonly keyArguments: readonly (readonly [name: string, type: AnyInput, description: string])[];
}

export function createProjectionTypes(builder: Builder, names: TypeNames, served: readonly ServedVersion[]) {
  const filters = createFilterTypes(builder, names);
  const orders = createOrderTypes(builder, names);
  const aggregateInputs = createAggregateInputs(builder, names, orders);
  const ids = idColumns(served.map(({ projection }) => projection));
  return served.map((version): ProjectionTypes => {
    const { projection } = version;
    const owner = projection.id;
    const name = names.claim(projection.graphql.type, owner);
    const columnTypes = createColumnTypes(builder, names, name, owner, projection.columns, ids.get(projection));
    const fields = columnTypes.fieldsOf();
    const row = implement(builder, name, fields, descriptionOf(projection));
    return {
      served: version,
      projection,
      row,
      key: keyTypeOf(builder, names, projection, fields),
      fields,
      where: filters.filterOf(projection, columnTypes, owner),
      orderBy: orders.orderOf(projection, owner),
      connection: connectionOf(builder, names, row, projection),
      aggregates: {
        ...createAggregateTypes(builder, names, projection, fields),
        ...aggregateInputs(projection, fields),
      },
      keyArguments: fields
        .filter((field) => projection.keyColumns.includes(field.name))
        .map((field) => [field.name, field.type as AnyInput, field.description]), // keys are scalars and enums, which are valid as input and output
    };
  });
}

function descriptionOf(projection: Projection): string {
  const description = projection.description ?? `A row of the read model \`${projection.name}\`.`;
  const partial = partialText(projection);
  return partial === null ? description : `${description} The read model is partial: ${partial}.`;
}
