import type { Projection } from '../../projections/declaration/projection.ts';
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
export class Slot {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** The parameters of a range of texts, see `RangeSearch`. */
export class RangeSlots {
  readonly start: Slot;
  /** Undefined if the range has no end. */
  readonly end: Slot | undefined;

  constructor(start: Slot, end: Slot | undefined) {
    this.start = start;
    this.end = end;
  }
}

/** The values of one run, and the shape that identifies the compiled statement. */
export interface Slots {
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
export function slottedFilter(
  projection: Projection,
  filter: RowFilter | null,
  slots: Slots,
  encode: Encode,
): RowFilter | null | undefined {
  if (filter === null) {
    slots.shape += '-';
    return null;
  }
  switch (filter.kind) {
    case 'and':
    case 'or': {
      slots.shape += `${filter.kind}(`;
      const filters: RowFilter[] = [];
      for (const part of filter.filters) {
        const slotted = slottedFilter(projection, part, slots, encode);
        if (!slotted) return undefined;
        filters.push(slotted);
      }
      slots.shape += ')';
      return { ...filter, filters };
    }
    case 'not': {
      slots.shape += 'not ';
      const inner = slottedFilter(projection, filter.filter, slots, encode);
      return inner ? { ...filter, filter: inner } : undefined;
    }
    case 'compare':
      slots.shape += `${filter.column} ${filter.operator} ${filter.value === null ? 'null' : ''};`;
      return filter.value === null
        ? filter
        : { ...filter, value: slotFor(slots, encode(projection, filter.column, filter.value)) };
    case 'in': {
      if (filter.values.length === 0 || filter.values.includes(null)) return undefined;
      slots.shape += `${filter.column} in;`;
      const list = filter.values.map((value) => encode(projection, filter.column, value));
      return { ...filter, values: [slotFor(slots, list)] };
    }
    case 'isNull':
      slots.shape += `${filter.column} is ${filter.isNull};`;
      return filter;
    case 'holds':
      slots.shape += `${filter.column} holds;`;
      return { ...filter, value: standIn<JsonValue>(slotFor(slots, JSON.stringify(filter.value))) };
    case 'related': {
      const { quantifier, target, columns } = filter;
      slots.shape += `${quantifier} ${target.toJSON()} ${columns}(`;
      const inner = slottedFilter(target.projection, filter.filter, slots, encode);
      slots.shape += ')';
      return inner === undefined ? undefined : { ...filter, filter: inner };
    }
    default:
      return slottedText(filter, slots, (text) => encode(projection, filter.column, text));
  }
}

function slottedText(filter: TextFilter, slots: Slots, encode: (text: string) => unknown): RowFilter {
  const search = textSearch(filter.kind);
  slots.shape += `${filter.column} ${filter.kind}`;
  if (search.index === 'search') {
    slots.shape += ';';
    return { ...filter, value: standIn<string>(slotFor(slots, encode(search.pattern(filter.value)))) };
  }
  const end = search.end(filter.value);
  slots.shape += end === undefined ? ' open;' : ';';
  const start = slotFor(slots, encode(filter.value));
  const range = new RangeSlots(start, end === undefined ? undefined : slotFor(slots, encode(end)));
  return { ...filter, value: standIn<string>(range) };
}

/** Filters with parameters are only compiled to SQL, where a parameter may stand for any value. */
function standIn<T>(slot: Slot | RangeSlots): T {
  return slot as T;
}

/** Like {@link slottedFilter}, for a page. */
export function slottedPage(
  projection: Projection,
  query: PageQuery,
  slots: Slots,
  encode: Encode,
): PageQuery | undefined {
  const { orderBy, direction, limit } = query;
  slots.shape += `${orderBy.map((by) => `${by.column} ${by.direction} ${by.nulls}`)}|${direction} ${limit}|`;
  const where = slottedFilter(projection, query.where, slots, encode);
  if (where === undefined) return undefined;
  const columns = [...orderBy.map(({ column }) => column), ...projection.keyColumns];
  const cursor = (values: Cursor | null): Cursor | null => {
    if (values?.length !== columns.length) return values;
    return values.map((value, index) => {
      slots.shape += value === null ? '|null' : '|';
      return value === null ? null : slotFor(slots, encode(projection, columns[index] as string, value)); // same length
    });
  };
  slots.shape += query.after ? '|after' : '|';
  const after = cursor(query.after);
  slots.shape += query.before ? '|before' : '|';
  return { ...query, where, after, before: cursor(query.before) };
}

/** Like {@link slottedFilter}, for aggregates. */
export function slottedAggregate(
  projection: Projection,
  query: AggregateQuery,
  slots: Slots,
  encode: Encode,
  encodedMeasure: (projection: Projection, measure: Measure, value: unknown) => unknown,
): AggregateQuery | undefined {
  const { groupBy, measures, having, orderBy, limit } = query;
  slots.shape += JSON.stringify([groupBy, measures, orderBy, limit]);
  const where = slottedFilter(projection, query.where, slots, encode);
  if (where === undefined) return undefined;
  const slottedHaving = having.map(({ measure, operator, value }): GroupCondition => {
    slots.shape += `${JSON.stringify(measure)}${operator}`;
    return { measure, operator, value: slotFor(slots, encodedMeasure(projection, measure, value)) };
  });
  return { ...query, where, having: slottedHaving };
}

export function slotFor({ values }: Slots, value: unknown): Slot {
  return new Slot(values.push(value) - 1);
}
