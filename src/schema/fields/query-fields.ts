import { invalidDeclaration } from '../../errors.ts';
import type { Column } from '../../projections/columns/column.ts';
import type { PageQuery } from '../../projections/queries/row-query.ts';
import { columnSelection, selectedFields } from '../analysis/selected-columns.ts';
import type { AnyInput, Builder, Root } from '../builder/builder.ts';
import { metadata } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import { listArguments, listQuery } from '../input/list-arguments.ts';
import type { Connection } from '../types/connection.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { uniqueLookUps } from '../types/query-names.ts';
import { canonicalInput, keyArgument } from '../values/canonical-input.ts';
import { beforeFilter, beforeRead } from './before-read.ts';
import { type AsOfInput, asOfType, refuseRelationsOfThePast, rowAsOf } from './history-fields.ts';

/**
 * Adds the queries of one projection: `cartSummary(cartId)`, `parcelByTrackingId(trackingId)` for each unique column, and
 * `cartSummaries(where, orderBy, first, …)`.
 */
export function addQueryFields(builder: Builder, names: TypeNames, types: ProjectionTypes, maxPageSize: number): void {
  addSingle(builder, names, types);
  addUnique(builder, names, types);
  addList(builder, names, types, maxPageSize);
}

function addSingle(builder: Builder, names: TypeNames, { served, projection, row, keyArguments }: ProjectionTypes) {
  if (projection.history && keyArguments.some(([name]) => name === 'asOf'))
    throw invalidDeclaration(
      projection.id,
      `the key column 'asOf' would hide the argument of that name. Call it otherwise.`,
    );
  const columnsOf = columnSelection(projection, [[]]);
  builder.queryField(names.claimField('Query', projection.graphql.single, projection.id), (t) =>
    t.field({
      type: row,
      nullable: true,
      description: `The \`${projection.graphql.type}\` with this key. Null if there is none, or if the viewer may not see it.`,
      ...metadata({ kind: 'row', served, by: projection.keyColumns }),
      args: {
        ...Object.fromEntries(
          keyArguments.map(([name, type, description]) => [name, t.arg({ type, required: true, description })]),
        ),
        ...(projection.history
          ? {
              asOf: t.arg({
                type: asOfType(builder),
                required: false,
                description: 'Returns the row as it was at this moment.',
              }),
            }
          : {}),
      },
      async resolve(root, args, context, info) {
        const asOf = (args as { readonly asOf?: AsOfInput | null }).asOf; // if it is declared
        if (asOf) refuseRelationsOfThePast(projection, selectedFields(info, [[]]), info.schema);
        const waiting = beforeRead(served, context, positionOf(root), info);
        if (waiting) await waiting;
        const key = keyArgument(projection, args);
        if (asOf) return rowAsOf(context, projection, key, columnsOf(info), asOf);
        const [found] = await context.readModels.findByKeys(projection, [key], columnsOf(info));
        return found;
      },
    }),
  );
}

function addUnique(builder: Builder, names: TypeNames, { served, projection, row, fields }: ProjectionTypes) {
  const columnsOf = columnSelection(projection, [[]]);
  // Scalars and enums, which are valid as input and output.
  const argumentOf = (column: string) => {
    const field = fields.find(({ name }) => name === column);
    return { type: field?.type as AnyInput, description: field?.description ?? '' }; // each column has one
  };
  for (const [by, field] of uniqueLookUps(projection)) {
    builder.queryField(names.claimField('Query', field, projection.id), (t) =>
      t.field({
        type: row,
        nullable: true,
        description: `The \`${projection.graphql.type}\` with this \`${by[0]}\`. Null if there is none, or if the viewer may not see it.`,
        ...metadata({ kind: 'row', served, by }),
        args: Object.fromEntries(by.map((column) => [column, t.arg({ ...argumentOf(column), required: true })])),
        async resolve(root, args, context, info) {
          const waiting = beforeRead(served, context, positionOf(root), info);
          if (waiting) await waiting;
          const given = args as Readonly<Record<string, unknown>>; // the arguments declared above
          const values = by.map((name) => canonicalInput(projection.columns[name] as Column, name, given[name])); // columns of this projection
          return context.readModels.findByUnique(projection, by, values, columnsOf(info));
        },
      }),
    );
  }
}

function addList(builder: Builder, names: TypeNames, types: ProjectionTypes, maxPageSize: number) {
  const { served, projection, connection } = types;
  const columnsOf = columnSelection(projection, [['edges', 'node'], ['nodes']]);
  builder.queryField(names.claimField('Query', projection.graphql.list, projection.id), (t) =>
    t.field({
      type: connection,
      description: `A page of the \`${projection.graphql.type}\` rows that match.`,
      ...metadata({ kind: 'list', served, maxPageSize }),
      args: listArguments(builder, types, maxPageSize),
      async resolve(root, args, context, info) {
        const waiting = beforeRead(served, context, positionOf(root), info);
        if (waiting) await waiting;
        const { query, cursorOf } = listQuery(projection, args, columnsOf(info), maxPageSize, context.versions);
        await beforeFilter(context, query.where);
        return connect(types, context, query, cursorOf);
      },
    }),
  );
}

/** Returns the connection of a query. Its page is read once, and only if a field of it is selected. */
export function connect(
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
    count: (upTo) => readModels.count(projection, query.where, upTo),
    cursorOf,
  };
}

/** At the top of an operation there is no root value. */
function positionOf(root: Root | undefined) {
  return root?.after;
}
