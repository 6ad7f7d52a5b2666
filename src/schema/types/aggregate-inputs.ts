import type { EnumRef, InputRef } from '@pothos/core';
import { isNumeric, isOrdered } from '../../projections/columns/aggregate-columns.ts';
import type { Column } from '../../projections/columns/column.ts';
import { decimal } from '../../projections/columns/decimal.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ComparisonOperator, GroupCondition, GroupOrder, Measure } from '../../projections/queries/row-query.ts';
import type { AnyInput, Builder, ScalarName, Types } from '../builder/builder.ts';
import { condition } from '../builder/conditions.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { badInput, canonicalInput } from '../values/canonical-input.ts';
import { operatorDescription } from '../values/filter-operators.ts';
import type { ColumnField } from './column-types.ts';
import { groupableColumns, groupingsOf } from './groupings.ts';
import type { OrderTypes } from './order.ts';

type Kind = Measure['kind'];
type Input = Readonly<Record<string, unknown>>;

export interface AggregateInputs {
  /** `CartSummaryGroupBy`: the enum of groupings. */
  readonly groupBy: EnumRef<Types, string>;
  /** `CartSummaryGroupHaving`: `{ count: { gte: 2 }, sum: { totalAmount: { gt: "100" } } }` */
  readonly having: InputRef<Input>;
  /** `CartSummaryGroupOrder`: `{ sum: { totalAmount: DESC } }` */
  readonly orderBy: InputRef<Input>;
}

/** Creates the inputs for one projection at a time; comparisons of scalars are shared. */
export function createAggregateInputs(builder: Builder, names: TypeNames, orders: OrderTypes) {
  const shared = new Map<ScalarName, AnyInput>();

  function comparison(scalar: ScalarName): AnyInput {
    const known = shared.get(scalar);
    if (known !== undefined) return known;
    const type = objectInput(
      `${scalar}Comparison`,
      comparisons.map((operator) => [operator, scalar]),
      {
        description: 'Matches if all given conditions match.',
        of: (operator) => operatorDescription(operator as ComparisonOperator),
      }, // a ComparisonOperator
    );
    shared.set(scalar, type);
    return type;
  }

  function objectInput(
    name: string,
    fields: readonly (readonly [name: string, type: AnyInput])[],
    options: {
      readonly description: string;
      readonly isOneOf?: true;
      readonly extensions?: typeof condition;
      /** Returns the description of a field. */
      readonly of: (field: string) => string;
    },
  ): InputRef<Input> {
    const { of, ...others } = options;
    const ref = builder.inputType(name, {
      ...others,
      fields: (t) =>
        Object.fromEntries(
          fields.map(([field, type]) => [field, t.field({ type, required: false, description: of(field) })]),
        ),
    });
    return ref as InputRef<Input>; // an object of these fields
  }

  return (projection: Projection, fields: readonly ColumnField[]): AggregateInputs => {
    const { graphql, id } = projection;
    const claim = (part: string) => names.claim(`${graphql.type}Group${part}`, id);
    const columnOf = ({ name }: ColumnField) => projection.columns[name] as Column; // there is a field for each column
    const numeric = fields.filter((field) => isNumeric(columnOf(field)));
    const groupableNames = groupableColumns(projection);
    const groupable = fields.filter(({ name }) => groupableNames.has(name));
    const ordered = fields.filter((field) => isOrdered(columnOf(field)));
    const parts = (
      kinds: readonly Kind[],
      name: string,
      of: readonly ColumnField[],
      typeOf: TypeOf,
      isOneOf?: true,
    ) => {
      if (of.length === 0) return [];
      const entries = of.map((field) => [field.name, typeOf(field)] as const);
      const type = objectInput(claim(name), entries, {
        description: isOneOf
          ? `Orders groups by the \`${kinds.join('` or `')}\` of one column.`
          : `Conditions for \`${kinds.join('` or `')}\` of columns. Matches if all given conditions match.`,
        of: (column) => (isOneOf ? `By \`${column}\`.` : `Conditions for \`${column}\`.`),
        ...(isOneOf ? { isOneOf } : {}),
      });
      return kinds.map((kind) => [kind, type] as const);
    };
    const groupings = [...groupingsOf(projection).keys()];
    const direction = orders.direction();
    const toDirection = () => direction;

    return {
      groupBy: builder.enumType(claim('By'), {
        description:
          'The columns that rows can be grouped by: indexed columns, and the hour, day or month of times, in UTC.',
        values: Object.fromEntries(groupings.map((name) => [name, { description: `Group by \`${name}\`.` }])),
      }) as EnumRef<Types, string>, // the names above
      having: objectInput(
        claim('Having'),
        [
          ['count', comparison('Int')],
          ...parts(['countDistinct'], 'HavingDistinct', groupable, () => comparison('Int')),
          ...parts(['sum'], 'HavingSum', numeric, (field) =>
            comparison(columnOf(field).type.kind === 'decimal' ? 'Decimal' : 'BigInt'),
          ),
          ...parts(['avg'], 'HavingAvg', numeric, () => comparison('Decimal')),
          ...parts(['min', 'max'], 'HavingExtreme', ordered, (field) => comparison(field.type as ScalarName)), // ordered types are scalars
        ],
        {
          extensions: condition,
          description: 'Matches groups for which all given conditions match.',
          of: (measure) => measures[measure as Kind],
        }, // one of the measures
      ),
      orderBy: objectInput(
        claim('Order'),
        [
          [
            'key',
            objectInput(
              claim('KeyOrder'),
              groupings.map((name) => [name, direction]),
              { description: keyOrder, of: (name) => `By \`${name}\`.`, isOneOf: true },
            ),
          ],
          ['count', direction],
          ...parts(['countDistinct'], 'DistinctOrder', groupable, toDirection, true),
          ...parts(['sum', 'avg'], 'NumberOrder', numeric, toDirection, true),
          ...parts(['min', 'max'], 'ExtremeOrder', ordered, toDirection, true),
        ],
        {
          description: 'Orders groups. Groups without a value come last in both directions.',
          of: (measure) => (measure === 'key' ? 'By one part of the key.' : measures[measure as Kind]), // one of the measures
          isOneOf: true,
        },
      ),
    };
  };
}

const keyOrder = 'Orders groups by one part of their key. Null is the largest value: last in ASC, first in DESC.';

type TypeOf = (field: ColumnField) => AnyInput;

const measures: Readonly<Record<Kind, string>> = {
  count: 'The number of rows.',
  countDistinct: 'The number of distinct values of a column.',
  sum: 'The sum of a column.',
  avg: 'The average of a column.',
  min: 'The minimum of a column.',
  max: 'The maximum of a column.',
};

const comparisons: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte'];

/** Parses a `having`. @throws RefoldError `BAD_USER_INPUT` for a null, as in `where` */
export function groupConditions(projection: Projection, having: Input | null | undefined): readonly GroupCondition[] {
  return present(having ?? {}, 'having').flatMap(([kind, part]) => {
    if (kind === 'count') return conditionsOf({ kind }, part, 'having.count', (value) => decimal(value as number)); // an Int
    return present(part, `having.${kind}`).flatMap(([column, operators]) =>
      conditionsOf(
        { kind: kind as 'sum', column }, // the input type has fields only for these kinds
        operators,
        `having.${kind}.${column}`,
        kind === 'sum' || kind === 'avg' || kind === 'countDistinct'
          ? (value) => decimal(value as string) // Decimal and BigInt are decimal strings, counts are numbers
          : (value) => canonicalInput(projection.columns[column] as Column, column, value),
      ),
    );
  });
}

function conditionsOf(
  measure: Measure,
  operators: unknown,
  path: string,
  canonical: (value: unknown) => unknown,
): readonly GroupCondition[] {
  const given = present(operators, path);
  if (given.length === 0) throw badInput(`'${path}' has no operator; leave the condition out instead.`); // as in `where`
  return given.map(([operator, value]) => ({
    measure,
    operator: operator as ComparisonOperator, // by its type
    value: canonical(value),
  }));
}

function present(input: unknown, path: string): readonly (readonly [string, unknown])[] {
  const entries = Object.entries(input as Input).filter(([, value]) => value !== undefined); // GraphQL has checked the shape
  const empty = entries.find(([, value]) => value === null);
  if (empty) throw badInput(`'${path}.${empty[0]}' is null; leave it out instead.`);
  return entries;
}

/** Parses an `orderBy` of groups. @throws RefoldError `BAD_USER_INPUT` for a key that the query does not group by */
export function groupOrder(
  projection: Projection,
  by: readonly string[],
  orderBy: readonly Input[] | null | undefined,
): readonly GroupOrder[] {
  return (orderBy ?? []).flatMap((entry) =>
    Object.entries(entry).flatMap(([kind, part]): GroupOrder[] => {
      if (kind === 'count') return [{ by: { kind }, direction: directionOf(part), nulls: 'last' }];
      return Object.entries(part as Input).map(([name, word]) => {
        const direction = directionOf(word);
        // Groups without a value come last in both directions: they are rarely what a client looks for.
        if (kind !== 'key') return { by: { kind: kind as 'sum', column: name }, direction, nulls: 'last' }; // as above
        const grouping = groupingsOf(projection).get(name);
        if (!grouping || !by.includes(name))
          throw badInput(`'orderBy' names the key '${name}', but 'by' does not. Add it to 'by'.`);
        return { by: grouping, direction, nulls: direction === 'asc' ? 'last' : 'first' };
      });
    }),
  );
}

function directionOf(word: unknown): 'asc' | 'desc' {
  return word === 'DESC' ? 'desc' : 'asc';
}
