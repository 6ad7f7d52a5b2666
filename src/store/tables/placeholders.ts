import type { Projection } from '../../projections/projection/projection.ts';
import type {
  AggregateQuery,
  Cursor,
  GroupCondition,
  JsonValue,
  Measure,
  PageQuery,
  RowFilter,
} from '../../projections/queries/row-query.ts';
import { type TextFilter, textSearch } from '../../projections/queries/text-operators.ts';

/** A parameter: stands in a statement for a value that differs from run to run. */
export class Placeholder {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** The parameters of a range of texts, see `RangeSearch`. */
export class RangeSlots {
  readonly start: Placeholder;
  /** Undefined if the range has no end. */
  readonly end: Placeholder | undefined;

  constructor(start: Placeholder, end: Placeholder | undefined) {
    this.start = start;
    this.end = end;
  }
}

/** The values of one run, and the shape that identifies the compiled statement. */
export interface Placeholders {
  /** In the order of the parameters. */
  readonly values: unknown[];
  /** Identifies everything in the statement except the values. */
  shape: string;
}

/** Encodes a value for binding. */
export type Encode = (projection: Projection, column: string, value: unknown) => unknown;

/**
 * Replaces the values of a filter by parameters. Undefined if the statement's text depends on the values; it is then compiled each time.
 */
export function filterWithPlaceholders(
  projection: Projection,
  filter: RowFilter | null,
  placeholders: Placeholders,
  encode: Encode,
): RowFilter | null | undefined {
  if (filter === null) {
    placeholders.shape += '-';
    return null;
  }
  switch (filter.kind) {
    case 'and':
    case 'or': {
      placeholders.shape += `${filter.kind}(`;
      const filters: RowFilter[] = [];
      for (const part of filter.filters) {
        const inner = filterWithPlaceholders(projection, part, placeholders, encode);
        if (!inner) return undefined;
        filters.push(inner);
      }
      placeholders.shape += ')';
      return { ...filter, filters };
    }
    case 'not': {
      placeholders.shape += 'not ';
      const inner = filterWithPlaceholders(projection, filter.filter, placeholders, encode);
      return inner ? { ...filter, filter: inner } : undefined;
    }
    case 'compare':
      placeholders.shape += `${filter.column} ${filter.operator} ${filter.value === null ? 'null' : ''};`;
      return filter.value === null
        ? filter
        : { ...filter, value: placeholderFor(placeholders, encode(projection, filter.column, filter.value)) };
    case 'in': {
      if (filter.values.length === 0 || filter.values.includes(null)) return undefined;
      placeholders.shape += `${filter.column} in;`;
      const list = filter.values.map((value) => encode(projection, filter.column, value));
      return { ...filter, values: [placeholderFor(placeholders, list)] };
    }
    case 'isNull':
      placeholders.shape += `${filter.column} is ${filter.isNull};`;
      return filter;
    case 'holds':
      placeholders.shape += `${filter.column} holds;`;
      return { ...filter, value: asValue<JsonValue>(placeholderFor(placeholders, JSON.stringify(filter.value))) };
    case 'related': {
      const { quantifier, target, columns } = filter;
      placeholders.shape += `${quantifier} ${target.toJSON()} ${columns}(`;
      const inner = filterWithPlaceholders(target.projection, filter.filter, placeholders, encode);
      placeholders.shape += ')';
      return inner === undefined ? undefined : { ...filter, filter: inner };
    }
    default:
      return slottedText(filter, placeholders, (text) => encode(projection, filter.column, text));
  }
}

function slottedText(filter: TextFilter, placeholders: Placeholders, encode: (text: string) => unknown): RowFilter {
  const search = textSearch(filter.kind);
  placeholders.shape += `${filter.column} ${filter.kind}`;
  if (search.index === 'search') {
    placeholders.shape += ';';
    return { ...filter, value: asValue<string>(placeholderFor(placeholders, encode(search.pattern(filter.value)))) };
  }
  const end = search.end(filter.value);
  placeholders.shape += end === undefined ? ' open;' : ';';
  const start = placeholderFor(placeholders, encode(filter.value));
  const range = new RangeSlots(start, end === undefined ? undefined : placeholderFor(placeholders, encode(end)));
  return { ...filter, value: asValue<string>(range) };
}

/** Filters with parameters are only compiled to SQL, where a parameter may stand for any value. */
function asValue<T>(placeholder: Placeholder | RangeSlots): T {
  return placeholder as T;
}

/** Like {@link filterWithPlaceholders}, for a page. */
export function pageWithPlaceholders(
  projection: Projection,
  query: PageQuery,
  placeholders: Placeholders,
  encode: Encode,
): PageQuery | undefined {
  const { orderBy, direction, limit } = query;
  placeholders.shape += `${orderBy.map((by) => `${by.column} ${by.direction} ${by.nulls}`)}|${direction} ${limit}|`;
  const where = filterWithPlaceholders(projection, query.where, placeholders, encode);
  if (where === undefined) return undefined;
  const columns = [...orderBy.map(({ column }) => column), ...projection.keyColumns];
  const cursor = (values: Cursor | null): Cursor | null => {
    if (values?.length !== columns.length) return values;
    return values.map((value, index) => {
      placeholders.shape += value === null ? '|null' : '|';
      return value === null ? null : placeholderFor(placeholders, encode(projection, columns[index] as string, value)); // same length
    });
  };
  placeholders.shape += query.after ? '|after' : '|';
  const after = cursor(query.after);
  placeholders.shape += query.before ? '|before' : '|';
  return { ...query, where, after, before: cursor(query.before) };
}

/** Like {@link filterWithPlaceholders}, for aggregates. */
export function aggregateWithPlaceholders(
  projection: Projection,
  query: AggregateQuery,
  placeholders: Placeholders,
  encode: Encode,
  encodedMeasure: (projection: Projection, measure: Measure, value: unknown) => unknown,
): AggregateQuery | undefined {
  const { groupBy, measures, having, orderBy, limit } = query;
  placeholders.shape += JSON.stringify([groupBy, measures, orderBy, limit]);
  const where = filterWithPlaceholders(projection, query.where, placeholders, encode);
  if (where === undefined) return undefined;
  const slottedHaving = having.map(({ measure, operator, value }): GroupCondition => {
    placeholders.shape += `${JSON.stringify(measure)}${operator}`;
    return { measure, operator, value: placeholderFor(placeholders, encodedMeasure(projection, measure, value)) };
  });
  return { ...query, where, having: slottedHaving };
}

export function placeholderFor({ values }: Placeholders, value: unknown): Placeholder {
  return new Placeholder(values.push(value) - 1);
}
