import type { InputRef } from '@pothos/core';
import pluralize from 'pluralize';
import { type Column, type ColumnKind, isContainer } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { isTextOperator, textOperatorsBy } from '../../projections/queries/text-operators.ts';
import type { AnyInput, Builder, ScalarName } from '../builder/builder.ts';
import { condition } from '../builder/conditions.ts';
import { pascalCase, type TypeNames } from '../builder/type-names.ts';
import { columnKinds, equality, ordered, type ScalarKind } from '../values/column-kinds.ts';
import { columnOperator, type FilterOperator, operatorDescription } from '../values/filter-operators.ts';
import type { ColumnTypes } from './column-types.ts';
import { createContainsTypes } from './contains-types.ts';

/** A `where` as GraphQL passes it. */
export type WhereInput = Readonly<Record<string, unknown>>;

export interface FilterTypes {
  /** Returns the input type of a projection's `where`. */
  filterOf(projection: Projection, columnTypes: ColumnTypes, owner: string): InputRef<WhereInput>;
}

/** The columns available in `orderBy`, and in `where` with comparisons: those that are indexed and ordered. */
export function indexedColumns(projection: Projection): readonly (readonly [string, Column])[] {
  return filteredColumns(projection).filter(([, column]) => !isContainer(column));
}

/** The columns available in `where`: also lists, objects and JSON, which are filtered by their contents. */
function filteredColumns(projection: Projection): readonly (readonly [string, Column])[] {
  return Object.entries(projection.columns).filter(([, column]) => column.flags.index);
}

export function createFilterTypes(builder: Builder, names: TypeNames): FilterTypes {
  const shared = new Map<string, AnyInput>();
  const byName = new Map<string, InputRef<WhereInput>>();
  const lists = new Map<string, InputRef<WhereInput>>();
  const containsType = createContainsTypes(builder, names);

  /** The filter with `some`, `every` and `none` for the rows of a projection. */
  function listFilter(target: string, filter: InputRef<WhereInput>, owner: string): InputRef<WhereInput> {
    const known = lists.get(target);
    if (known) return known;
    const ref = builder.inputRef<Record<string, unknown>>(
      names.claim(`${filter.name.replace(/Filter$/, '')}ListFilter`, owner),
    );
    const described = (description: string) => ({ type: filter, required: false, description }) as const;
    ref.implement({
      extensions: condition,
      description: `Conditions for the \`${filter.name.replace(/Filter$/, '')}\` rows that are related to a row. Matches if all given conditions match.`,
      fields: (t) =>
        ({
          some: t.field(described('At least one related row matches.')),
          every: t.field(described('All related rows match. Also matches if there are none.')),
          none: t.field(described('No related row matches.')),
        }) as never, // as below
    });
    lists.set(target, ref as InputRef<WhereInput>); // as below
    return ref as InputRef<WhereInput>;
  }

  function columnFilter(column: Column, name: string, types: ColumnTypes, prefix: string, owner: string): AnyInput {
    const operators = operatorsOf(column);
    const value = comparedColumn(column);
    if (!value && column.type.kind !== 'json') {
      const part = containsType(column, name, types, owner);
      return operatorInput(builder, names.claim(`${prefix}${pascalCase(name)}Filter`, owner), part, operators);
    }
    const item = value === column ? name : pluralize.singular(name); // the name that the column's own type uses
    const type = value ? (types.typeOf(value, item) as AnyInput) : 'JSON'; // scalars and enums are valid as input and output
    if (value?.type.kind === 'enum')
      return operatorInput(builder, names.claim(`${prefix}${pascalCase(name)}Filter`, owner), type, operators);
    const scalar = type as ScalarName; // it is not an enum
    const kind = `${column.flags.search ? 'Searchable' : ''}${scalar}${value === column || !value ? '' : 'List'}`;
    const filter = `${column.flags.nullable ? 'Nullable' : ''}${kind}Filter`;
    const known = shared.get(filter) ?? operatorInput(builder, filter, scalar, operators);
    shared.set(filter, known);
    return known;
  }

  return {
    filterOf(projection, types, owner) {
      const name = names.claim(`${projection.graphql.type}Filter`, owner);
      const ref = builder.inputRef<Record<string, unknown>>(name);
      const columns = filteredColumns(projection).map(
        ([column, declared]) =>
          [column, columnFilter(declared, column, types, projection.graphql.type, owner)] as const,
      );
      for (const word of ['and', 'or', 'not']) names.claimField(name, word, 'Refold');
      for (const [column] of columns) names.claimField(name, column, `${owner}, column '${column}'`);
      byName.set(projection.name, ref as InputRef<WhereInput>); // as below
      const related = (): readonly (readonly [string, InputRef<WhereInput>])[] =>
        Object.entries(projection.relations).flatMap(([relation, { kind, target }]) => {
          const filter = byName.get(target);
          if (!filter || columns.some(([column]) => column === relation)) return []; // all its versions are retired
          return [[relation, kind === 'one' ? filter : listFilter(target, filter, owner)] as const];
        });
      ref.implement({
        extensions: condition,
        description:
          'Matches if all given conditions match. An empty `and` matches all rows, an empty `or` matches none. Null is refused: leave the condition out.',
        fields: (t) =>
          ({
            ...Object.fromEntries(
              [...columns, ...related()].map(([name, type]) => [
                name,
                t.field({ type, required: false, description: `Conditions for \`${name}\`.` }),
              ]),
            ),
            and: t.field({ type: [ref], required: false, description: 'All of these match.' }),
            or: t.field({ type: [ref], required: false, description: 'At least one of these matches.' }),
            not: t.field({ type: ref, required: false, description: 'This does not match.' }),
          }) as never, // the fields are only known at run time
      });
      return ref as InputRef<WhereInput>; // an object of the fields above
    },
  };
}

export function operatorsOf(column: Column): readonly FilterOperator[] {
  const { type, flags } = column;
  return [
    ...(comparedColumn(column) === undefined ? (['contains'] as const) : (operators[type.kind] ?? [])),
    ...(flags.search ? textOperatorsBy('search') : []),
    ...(flags.nullable ? (['isNull'] as const) : []),
  ];
}

/**
 * Returns what a column is compared with: itself, or the item of a list. Undefined for JSON and objects, which are compared by their
 * contents.
 */
export function comparedColumn(column: Column): Column | undefined {
  if (!isContainer(column)) return column;
  return column.type.kind === 'list' && !isContainer(column.type.item) ? column.type.item : undefined;
}

const operators: Readonly<Partial<Record<ColumnKind['kind'], readonly FilterOperator[]>>> = {
  enum: equality,
  text: [...ordered, ...textOperatorsBy('ordered')],
  list: ['has', 'hasEvery', 'hasSome'],
  ...operatorsOfKinds(),
};

function operatorsOfKinds(): Readonly<Record<ScalarKind, readonly FilterOperator[]>> {
  const entries = Object.entries(columnKinds).map(([kind, described]) => [kind, described.operators]);
  return Object.fromEntries(entries); // one entry for each kind
}

const jsonContains =
  'Contains this value: fields of an object or items of a list, at any depth. `{ size: "L", colour: "red" }` contains `{ size: "L" }`.';
const listContains =
  'Contains all of these items, in any order. An item that is an object needs only the fields that are given here.';

function containsOf(value: AnyInput): string {
  return Array.isArray(value) ? listContains : jsonContains;
}

/** A part of an id is text, not an id. Types other than scalars stay: they are parts of an object or list. */
function textOf(value: AnyInput): AnyInput {
  return isPart(value) ? value : 'String';
}

function isPart(value: AnyInput): boolean {
  return value === 'JSON' || typeof value !== 'string';
}

function operatorInput(
  builder: Builder,
  name: string,
  value: AnyInput,
  operators: readonly FilterOperator[],
): AnyInput {
  return builder.inputType(name, {
    extensions: condition,
    description: 'Matches if all given conditions match.',
    fields: (t) =>
      Object.fromEntries(
        operators.map((operator) => {
          const takes = columnOperator(operator)?.takes;
          const type = takes === 'boolean' ? 'Boolean' : isTextOperator(operator) ? textOf(value) : value;
          const description =
            operator === 'contains' && isPart(value) ? containsOf(value) : operatorDescription(operator);
          return [
            operator,
            takes === 'values'
              ? t.field({ type: [type], required: false, description })
              : t.field({ type, required: false, description }),
          ];
        }),
      ),
  });
}
