import type { ObjectRef } from '@pothos/core';
import { averageScale, isNumeric, isOrdered } from '../../projections/columns/aggregate-columns.ts';
import type { Column } from '../../projections/columns/column.ts';
import { type Decimal, isDecimal } from '../../projections/columns/decimal.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { AggregateQuery, AggregateRow, Measure } from '../../projections/queries/row-query.ts';
import type { Builder, Types } from '../builder/builder.ts';
import { metadata } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { type ColumnField, implement } from './column-types.ts';
import { groupableColumns, groupingsOf } from './groupings.ts';

/** One group, with its measures by kind and column. */
export interface Aggregate {
  readonly key: Row;
  readonly count: number;
  readonly countDistinct: Row;
  readonly sum: Row;
  readonly avg: Row;
  readonly min: Row;
  readonly max: Row;
}

export interface AggregateTypes {
  /** `CartSummaryAggregate`: the measures of all matching rows. */
  readonly aggregate: ObjectRef<Types, Aggregate>;
  /** `CartSummaryGroup`: the measures of one group, with its key. */
  readonly group: ObjectRef<Types, Aggregate>;
}

/** `fields` are those of the row type; values that come from a column have their types. */
export function createAggregateTypes(
  builder: Builder,
  names: TypeNames,
  projection: Projection,
  fields: readonly ColumnField[],
): AggregateTypes {
  const { graphql, id } = projection;
  const columnOf = ({ name }: ColumnField) => projection.columns[name] as Column; // there is a field for each column
  const numeric = fields.filter((field) => isNumeric(columnOf(field)));
  const ordered = fields
    .filter((field) => isOrdered(columnOf(field)))
    .map((field) => ({ ...nullable(field), description: `The value for \`${field.name}\`.` }));
  const typeOf = (part: string, of: readonly ColumnField[], description: string) =>
    of.length === 0 ? undefined : implement(builder, names.claim(`${graphql.type}${part}`, id), of, description);

  const groupable = groupableColumns(projection);
  const distinct = typeOf(
    'AggregateCountDistinct',
    fields.filter(({ name }) => groupable.has(name)).map(distinctField),
    'Exact numbers of distinct values. Null is not counted.',
  );
  const sum = typeOf(
    'AggregateSum',
    numeric.map((field) => sumField(field, columnOf(field))),
    'Sums. Those of integers have as many digits as they need. Null if there is no value.',
  );
  const avg = typeOf(
    'AggregateAvg',
    numeric.map((field) => averageField(field, columnOf(field))),
    'Averages of the values that are not null, with four more decimal places than the column has, rounded half away from zero. Null if there is no value.',
  );
  const extreme = typeOf(
    'AggregateExtreme',
    ordered,
    'Minimums or maximums. Texts are compared by code points. Null if there is no value.',
  );
  const key = typeOf(
    'GroupKey',
    keyFields(projection, fields),
    'The values that the rows of a group share. Null if they have no value, or if the rows are not grouped by that column.',
  );

  const measured = (name: string, description: string) => {
    const ref = builder.objectRef<Aggregate>(names.claim(name, id));
    return ref.implement({
      description,
      fields: (t) => ({
        count: t.int({
          description: 'The number of rows.',
          ...metadata({ kind: 'measure', of: 'count' }),
          resolve: (aggregate) => aggregate.count,
        }),
        ...(distinct
          ? {
              countDistinct: t.field({
                type: distinct,
                description: 'The number of distinct values of each column.',
                ...metadata({ kind: 'measure', of: 'countDistinct' }),
                resolve: (aggregate) => aggregate.countDistinct,
              }),
            }
          : {}),
        ...(sum && avg
          ? {
              sum: t.field({
                type: sum,
                description: 'The sum of each column.',
                ...metadata({ kind: 'measure', of: 'sum' }),
                resolve: (aggregate) => aggregate.sum,
              }),
              avg: t.field({
                type: avg,
                description: 'The average of each column.',
                ...metadata({ kind: 'measure', of: 'avg' }),
                resolve: (aggregate) => aggregate.avg,
              }),
            }
          : {}),
        ...(extreme
          ? {
              min: t.field({
                type: extreme,
                description: 'The minimum of each column.',
                ...metadata({ kind: 'measure', of: 'min' }),
                resolve: (aggregate) => aggregate.min,
              }),
              max: t.field({
                type: extreme,
                description: 'The maximum of each column.',
                ...metadata({ kind: 'measure', of: 'max' }),
                resolve: (aggregate) => aggregate.max,
              }),
            }
          : {}),
      }),
    });
  };
  const aggregate = measured(`${graphql.type}Aggregate`, 'Aggregates of all rows that match.');
  const group = measured(`${graphql.type}Group`, 'Aggregates of the rows of one group.');
  // There is always a key, because the table's key is indexed.
  if (key)
    builder.objectField(group, 'key', (t) =>
      t.field({
        type: key,
        description: 'The values that its rows share.',
        ...metadata({ kind: 'groupKey' }),
        resolve: ({ key }) => key,
      }),
    );
  return { aggregate, group };
}

/** Converts a database row to the shape that the fields above read. Measures that are not selected are absent. */
export function aggregateOf(
  groupingNames: readonly string[],
  { measures }: Pick<AggregateQuery, 'measures'>,
  row: AggregateRow,
): Aggregate {
  const made = { count: 0, countDistinct: {}, sum: {}, avg: {}, min: {}, max: {} } as Record<
    Exclude<Measure['kind'], 'count'>,
    Record<string, unknown>
  > & { count: number }; // filled below
  for (const [index, measure] of measures.entries()) {
    if (measure.kind === 'count') made.count = Number(row.measures[index]);
    else made[measure.kind][measure.column] = row.measures[index];
  }
  return { ...made, key: Object.fromEntries(groupingNames.map((name, index) => [name, row.key[index]])) };
}

function nullable(field: ColumnField): ColumnField {
  return { ...field, nullable: true };
}

function distinctField(field: ColumnField): ColumnField {
  const description = `The number of distinct values of \`${field.name}\`.`;
  return { ...field, description, type: 'Int', nullable: false, resolve: (row) => row[field.name] };
}

function sumField(field: ColumnField, { type }: Column): ColumnField {
  const described = { ...nullable(field), description: `The sum of \`${field.name}\`.` };
  return type.kind === 'decimal' ? described : { ...described, type: 'BigInt', resolve: (row) => row[field.name] };
}

function averageField(field: ColumnField, column: Column): ColumnField {
  const scale = averageScale(column);
  return {
    ...nullable(field),
    description: `The average of \`${field.name}\`.`,
    type: 'Decimal',
    resolve: (row) => {
      const value = row[field.name];
      return isDecimal(value) ? (value as Decimal).toFixed(scale) : value;
    },
  };
}

function keyFields(projection: Projection, fields: readonly ColumnField[]): readonly ColumnField[] {
  const byName = new Map(fields.map((field) => [field.name, field]));
  return [...groupingsOf(projection)].flatMap(([name, { column, bucket }]) => {
    const field = byName.get(column);
    if (!field) return [];
    if (bucket === null) return [nullable(field)];
    return {
      name,
      ...(field.column ? { column: field.column } : {}),
      type: bucket === 'hour' ? 'DateTime' : 'Date',
      nullable: true,
      description: descriptions[bucket],
      deprecated: field.deprecated,
      resolve: (row) => row[name],
    };
  });
}

const descriptions = {
  hour: 'The start of the hour, in UTC.',
  day: 'The day, in UTC.',
  month: 'The first day of the month, in UTC.',
} as const;
