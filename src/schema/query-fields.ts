import type { PageQuery } from '../projections/row-query.ts';
import { beforeRead } from './before-read.ts';
import type { Builder, Root } from './builder.ts';
import { canonicalKey } from './canonical-input.ts';
import type { Connection } from './connection.ts';
import { listArguments, listQuery } from './list-arguments.ts';
import type { OperationContext } from './operation-context.ts';
import type { ProjectionTypes } from './projection-types.ts';
import { columnSelection } from './selected-columns.ts';
import type { TypeNames } from './type-names.ts';

/** `cartSummary(cartId)` and `cartSummaries(where, orderBy, first, …)` of one projection. */
export function addQueryFields(builder: Builder, names: TypeNames, types: ProjectionTypes, maxPageSize: number): void {
  addSingle(builder, names, types);
  addList(builder, names, types, maxPageSize);
}

function addSingle(builder: Builder, names: TypeNames, { served, projection, row, keyArguments }: ProjectionTypes) {
  const columnsOf = columnSelection(projection, [[]]);
  builder.queryField(names.claimField('Query', projection.graphql.single, projection.id), (t) =>
    t.field({
      type: row,
      nullable: true,
      ...describe(projection.description),
      args: Object.fromEntries(keyArguments.map(([name, type]) => [name, t.arg({ type, required: true })])),
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, positionOf(root), info);
        if (waiting) await waiting;
        const key = canonicalKey(projection, args);
        const [found] = await context.readModels.findByKeys(projection, [key], columnsOf(info));
        return found;
      },
    }),
  );
}

function addList(builder: Builder, names: TypeNames, types: ProjectionTypes, maxPageSize: number) {
  const { served, projection, connection } = types;
  const columnsOf = columnSelection(projection, [['edges', 'node'], ['nodes']]);
  builder.queryField(names.claimField('Query', projection.graphql.list, projection.id), (t) =>
    t.field({
      type: connection,
      ...describe(projection.description),
      args: listArguments(builder, types, maxPageSize),
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, positionOf(root), info);
        if (waiting) await waiting;
        const { query, cursorOf } = listQuery(projection, args, columnsOf(info), maxPageSize);
        return connect(types, context, query, cursorOf);
      },
    }),
  );
}

function connect(
  { projection }: ProjectionTypes,
  { readModels }: OperationContext,
  query: PageQuery,
  cursorOf: Connection['cursorOf'],
): Connection {
  let page: ReturnType<Connection['page']> | undefined;
  return {
    page() {
      page ??= readModels.findPage(projection, query);
      return page;
    },
    count: () => readModels.count(projection, query.where),
    cursorOf,
  };
}

/** At the top of an operation there is no root value. */
function positionOf(root: Root | undefined) {
  return root?.after;
}

function describe(description: string | undefined): { description?: string } {
  return description === undefined ? {} : { description };
}
