import type { InputRef } from '@pothos/core';
import type { Column, ColumnKind } from '../projections/column.ts';
import type { Projection } from '../projections/projection.ts';
import type { AnyInput, Builder, ScalarName } from './builder.ts';
import type { ColumnTypes } from './column-types.ts';
import { pascalCase, type TypeNames } from './type-names.ts';

/** The operators that `where` offers for a column. */
export type FilterOperator = 'eq' | 'ne' | 'in' | 'notIn' | 'lt' | 'lte' | 'gt' | 'gte' | 'startsWith' | 'isNull';

/** A `where` as GraphQL gives it. */
export type WhereInput = Readonly<Record<string, unknown>>;

export interface FilterTypes {
  /** The input type of a projection's `where`. */
  filterOf(projection: Projection, columnTypes: ColumnTypes, owner: string): InputRef<WhereInput>;
}

/** The columns that `where` and `orderBy` offer: those that an index serves. */
export function indexedColumns(projection: Projection): readonly (readonly [string, Column])[] {
  return Object.entries(projection.columns).filter(([, column]) => column.flags.index);
}

export function createFilterTypes(builder: Builder, names: TypeNames): FilterTypes {
  const shared = new Map<string, AnyInput>();

  function columnFilter(column: Column, name: string, types: ColumnTypes, prefix: string, owner: string): AnyInput {
    const operators = operatorsOf(column);
    if (column.type.kind === 'enum') {
      const filter = names.claim(`${prefix}${pascalCase(name)}Filter`, owner);
      return operatorInput(builder, filter, types.typeOf(column, name) as AnyInput, operators); // an enum goes both ways
    }
    const scalar = scalarOf(column);
    const filter = `${column.flags.nullable ? 'Nullable' : ''}${scalar}Filter`;
    const type = shared.get(filter) ?? operatorInput(builder, filter, scalar, operators);
    shared.set(filter, type);
    return type;
  }

  return {
    filterOf(projection, types, owner) {
      const name = names.claim(`${projection.graphql.type}Filter`, owner);
      const ref = builder.inputRef<Record<string, unknown>>(name);
      const columns = indexedColumns(projection).map(
        ([column, declared]) =>
          [column, columnFilter(declared, column, types, projection.graphql.type, owner)] as const,
      );
      for (const word of ['and', 'or', 'not']) names.claimField(name, word, 'Refold');
      for (const [column] of columns) names.claimField(name, column, `${owner}, column '${column}'`);
      ref.implement({
        description: `All that is set must hold. An empty list holds under 'and' and never under 'or'. Null stands nowhere in it: leave out what does not matter.`,
        fields: (t) =>
          ({
            ...Object.fromEntries(columns.map(([column, type]) => [column, t.field({ type, required: false })])),
            and: t.field({ type: [ref], required: false }),
            or: t.field({ type: [ref], required: false }),
            not: t.field({ type: ref, required: false }),
          }) as never, // the fields are known at run time only
      });
      return ref as InputRef<WhereInput>; // an object of the fields above
    },
  };
}

export function operatorsOf({ type, flags }: Column): readonly FilterOperator[] {
  return [...(operators[type.kind] ?? []), ...(flags.nullable ? (['isNull'] as const) : [])];
}

const equality = ['eq', 'ne', 'in', 'notIn'] as const;
const ordered = [...equality, 'lt', 'lte', 'gt', 'gte'] as const;

const operators: Readonly<Partial<Record<ColumnKind['kind'], readonly FilterOperator[]>>> = {
  boolean: ['eq', 'ne'],
  enum: equality,
  uuid: equality,
  text: [...ordered, 'startsWith'],
  integer: ordered,
  bigint: ordered,
  decimal: ordered,
  date: ordered,
  timestamptz: ordered,
};

const descriptions: Readonly<Record<FilterOperator, string>> = {
  eq: 'Equal.',
  ne: 'All that is not equal; null too.',
  in: 'One of these. An empty list finds nothing.',
  notIn: 'None of these; null too. An empty list finds all.',
  lt: 'Less.',
  lte: 'Less or equal.',
  gt: 'Greater.',
  gte: 'Greater or equal.',
  startsWith: 'Starts with this text, in upper and lower case as it stands.',
  isNull: 'True finds null, false all that is not null.',
};

function operatorInput(
  builder: Builder,
  name: string,
  value: AnyInput,
  operators: readonly FilterOperator[],
): AnyInput {
  return builder.inputType(name, {
    fields: (t) =>
      Object.fromEntries(
        operators.map((operator) => {
          const listed = operator === 'in' || operator === 'notIn';
          const type = operator === 'isNull' ? 'Boolean' : operator === 'startsWith' ? 'String' : value;
          const description = descriptions[operator];
          return [
            operator,
            listed
              ? t.field({ type: [type], required: false, description })
              : t.field({ type, required: false, description }),
          ];
        }),
      ),
  });
}

function scalarOf({ type, flags }: Column): ScalarName {
  switch (type.kind) {
    case 'text':
      return flags.primaryKey ? 'ID' : 'String';
    case 'uuid':
      return 'UUID';
    case 'integer':
      return 'Int';
    case 'bigint':
      return 'BigInt';
    case 'decimal':
      return 'Decimal';
    case 'boolean':
      return 'Boolean';
    case 'date':
      return 'Date';
    case 'timestamptz':
      return 'DateTime';
    case 'enum':
    case 'json':
    case 'object':
    case 'list':
      throw new TypeError(`A column of kind ${type.kind} has no filter of a scalar.`); // an enum has its own, the others no index
  }
}
