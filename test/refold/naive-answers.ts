import { buildSchema, type ExecutionResult, execute, parse, validate } from 'graphql';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { compareValues, cursorOf, naivePage } from '../store/queries/naive-rows.ts';
import { groups, maxPageSize, measuresOf } from './naive-groups.ts';
import { canonical, columnOf, type Input, ordersOf, told } from './naive-values.ts';
import { checked, holds, ledTo, type View } from './naive-where.ts';
import { cursorAsked, type RandomOperation } from './random-operations.ts';

export interface NaiveApi {
  /** Whether the schema has all that the operation selects. */
  has(operation: RandomOperation): boolean;
  /** The response for one viewer. */
  answer(operation: RandomOperation, sees: (projection: Projection, row: Row) => boolean): Promise<ExecutionResult>;
}

/** Evaluates operations over rows in memory, without SQL or code of the API's queries. A cursor or id is returned as what it stands for. */
export function naiveApi(
  sdl: string,
  projections: readonly Projection[],
  tables: ReadonlyMap<Projection, readonly Row[]>,
): NaiveApi {
  const schema = buildSchema(sdl, { assumeValid: true });

  return {
    has: ({ query }) => validate(schema, parse(query)).length === 0,
    async answer({ query, variables }, sees) {
      const view = {
        rows: (projection: Projection) => (tables.get(projection) ?? []).filter((row) => sees(projection, row)),
        named: (name: string) => projections.find((projection) => projection.name === name) as Projection, // declared
        all: (projection: Projection) => tables.get(projection) ?? [],
      };
      const rootValue = Object.assign({}, ...projections.map((projection) => rootFields(view, projection)));
      const document = parse(query);
      return execute({ schema, document, rootValue, variableValues: variables });
    },
  };
}

function rootFields(view: View, projection: Projection): Input {
  const { single, list } = projection.graphql;
  const found = (where: unknown) =>
    view.rows(projection).filter((row) => holds(view, projection, checked(view, projection, where), row));
  return {
    [single]: (key: Input) => {
      const wanted = projection.keyColumns.map((name) => canonical(columnOf(projection, name), key[name]));
      const row = view
        .rows(projection)
        .find((one) => projection.keyColumns.every((name, index) => compareValues(one[name], wanted[index]) === 0));
      return row ? rowFields(view, projection, row) : null;
    },
    [list]: (args: Input) => connection(view, projection, view.rows(projection), args),
    [`${list}Aggregate`]: ({ where }: Input) => measuresOf(projection, found(where)),
    [`${list}Grouped`]: (args: Input) => groups(projection, found(args.where), args),
  };
}

/** A row with its relations, each field as in a response. */
function rowFields(view: View, projection: Projection, row: Row): Input {
  const { columns, relations, name } = projection;
  return {
    id: named(name, projection, row),
    ...Object.fromEntries(Object.entries(columns).map(([column, declared]) => [column, told(declared, row[column])])),
    ...Object.fromEntries(
      Object.entries(relations).map(([field, relation]) => {
        const target = view.named(relation.target);
        const others = () => ledTo(view, relation, row);
        if (relation.kind === 'many') return [field, (args: Input) => connection(view, target, others(), args)];
        return [field, () => others().map((other) => rowFields(view, target, other))[0] ?? null];
      }),
    ),
  };
}

function connection(view: View, projection: Projection, rows: readonly Row[], args: Input): Input {
  const where = checked(view, projection, args.where);
  const orderBy = ordersOf(args.orderBy);
  const [first, last] = [args.first ?? null, args.last ?? null] as [number | null, number | null]; // Ints
  if (Math.max(first ?? 0, last ?? 0) > maxPageSize) throw new Error('a page is too large');
  const found = rows.filter((row) => holds(view, projection, where, row));
  const place = (asked: unknown) => {
    if (typeof asked !== 'string') return null;
    const row = view.all(projection)[cursorAsked(asked).index];
    return row ? cursorOf(projection, orderBy)(row) : null;
  };
  const page = naivePage(projection, found, {
    where: null,
    orderBy,
    columns: [],
    direction: last === null ? 'forward' : 'backward',
    limit: last ?? first ?? 20,
    after: place(args.after),
    before: place(args.before),
  });
  const cursor = (row: Row | undefined) => (row ? named('cursor', projection, row) : null);
  const nodes = page.rows.map((row) => rowFields(view, projection, row));
  return {
    nodes,
    edges: page.rows.map((row, index) => ({ cursor: cursor(row), node: nodes[index] })),
    totalCount: ({ upTo }: Input) => Math.min(found.length, typeof upTo === 'number' ? upTo : found.length),
    pageInfo: {
      hasNextPage: page.hasNextPage,
      hasPreviousPage: page.hasPreviousPage,
      startCursor: cursor(page.rows[0]),
      endCursor: cursor(page.rows.at(-1)),
    },
  };
}

function named(what: string, { keyColumns }: Projection, row: Row): string {
  return JSON.stringify([what, ...keyColumns.map((name) => row[name])]);
}

/** A response with each id and each cursor replaced by what it stands for. */
export function withNames(value: unknown, projections: readonly Projection[]): unknown {
  if (Array.isArray(value)) return value.map((item) => withNames(item, projections));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withNames(part, projections)]));
  if (typeof value !== 'string' || !/^W[\w-]{8,}$/.test(value)) return value;
  const parts: unknown[] = JSON.parse(Buffer.from(value, 'base64url').toString());
  if (parts[0] === 1) return JSON.stringify(parts.slice(1));
  const projection = projections.find(({ name }) => String(parts[0]).startsWith(`${name},`));
  return JSON.stringify(['cursor', ...parts.slice(-(projection?.keyColumns.length ?? 1))]);
}
