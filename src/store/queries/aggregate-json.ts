import { type RawBuilder, sql } from 'kysely';
import { averageScale } from '../../projections/columns/aggregate-columns.ts';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { AggregatePart, Members } from '../../projections/queries/response-query.ts';
import type { AggregateQuery, Grouping, Measure } from '../../projections/queries/row-query.ts';
import { type TextParts, timestampText } from '../columns/column-sql.ts';
import { keyName, measureName } from './aggregate-rows.ts';
import { objectParts, textOf, valueParts } from './json-text.ts';

/** The JSON of one row of an aggregate: of all rows, or of a group. Keys that the query does not group by are null. */
export function aggregateParts(
  members: Members<AggregatePart>,
  projection: Projection,
  { groupBy, measures }: AggregateQuery,
  by: readonly string[],
  table: string,
): TextParts {
  const of = (name: string) => sql.ref(`${table}.${name}`);
  const measured = (kind: Measure['kind'], column?: string) =>
    of(
      measureName(
        measures.findIndex((one) => one.kind === kind && ('column' in one ? one.column : undefined) === column),
      ),
    );
  return objectParts(members, (part): TextParts => {
    switch (part.kind) {
      case 'constant':
        return [part.json];
      case 'count':
        return [measured('count')];
      case 'measures':
        return objectParts(part.members, (inner) =>
          inner.kind === 'constant'
            ? [inner.json]
            : measureParts(projection, part.of, inner.column, measured(part.of, inner.column)),
        );
      case 'key':
        return objectParts(part.members, (inner): TextParts => {
          if (inner.kind === 'constant') return [inner.json];
          const index = by.indexOf(inner.name);
          const grouping = groupBy[index];
          return grouping ? keyParts(projection, grouping, of(keyName(index))) : ['null'];
        });
    }
  });
}

function measureParts(
  projection: Projection,
  kind: Exclude<Measure['kind'], 'count'>,
  name: string,
  value: RawBuilder<unknown>,
): TextParts {
  const column = projection.columns[name] as Column; // selected of its type
  const { type } = column;
  switch (kind) {
    case 'countDistinct':
      return [value];
    case 'min':
    case 'max':
      return valueParts({ column: nullable(column), value, text: undefined, depth: 0 }, null);
    case 'sum':
      return quoted(value, type.kind === 'decimal' ? sql`round(${value}, ${sql.lit(type.scale)})` : value);
    case 'avg':
      return quoted(value, sql`round(${value}, ${sql.lit(averageScale(column))})`);
  }
}

function keyParts(projection: Projection, { column, bucket }: Grouping, value: RawBuilder<unknown>): TextParts {
  switch (bucket) {
    case null:
      return valueParts(
        { column: nullable(projection.columns[column] as Column), value, text: undefined, depth: 0 }, // a column of the projection
        null,
      );
    case 'hour':
      return quoted(value, timestampText(value));
    case 'day':
    case 'month':
      return quoted(value, value);
  }
}

function quoted(value: RawBuilder<unknown>, text: RawBuilder<unknown>): TextParts {
  return [sql`case when ${value} is null then 'null' else ${textOf(['"', text, '"'])} end`];
}

function nullable(column: Column): Column {
  return { ...column, flags: { ...column.flags, nullable: true } };
}
