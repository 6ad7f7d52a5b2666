import type { GraphQLResolveInfo } from 'graphql';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ManyRelation, OneRelation } from '../../projections/projection/relations.ts';
import type { PageQuery, RowPage } from '../../projections/queries/row-query.ts';
import { ownRelations } from '../analysis/own-fields.ts';
import { columnSelection, type SelectionPath, selectedFields } from '../analysis/selected-columns.ts';
import type { Builder } from '../builder/builder.ts';
import { metadata } from '../builder/field-metadata.ts';
import { listArguments, listQuery } from '../input/list-arguments.ts';
import type { Connection } from '../types/connection.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput, columnHolds } from '../values/canonical-input.ts';
import { beforeFilter, beforeRelatedRead } from './before-read.ts';

/** Adds the fields that lead from a row to rows of other projections. The related rows of all rows of one level are read together. */
export function addRelationFields(
  builder: Builder,
  types: ProjectionTypes,
  projections: readonly ProjectionTypes[],
  maxPageSize: number,
): void {
  for (const [name, relation] of Object.entries(types.projection.relations)) {
    const target = projections.find(({ projection }) => projection.name === relation.target);
    if (!target) continue; // all its versions are retired
    if (relation.kind === 'one') addOne(builder, name, relation, types, target, maxPageSize);
    else addMany(builder, name, relation, types, target, maxPageSize);
  }
}

function addOne(
  builder: Builder,
  name: string,
  relation: OneRelation,
  { row }: ProjectionTypes,
  { served, projection, row: type }: ProjectionTypes,
  maxPageSize: number,
) {
  const { from, description } = relation;
  const columnsOf = columnSelection(projection, [[]]);
  builder.objectField(row, name, (t) =>
    t.field({
      type,
      nullable: true,
      description:
        description ??
        `The \`${projection.graphql.type}\` with the key in \`${from.join('`, `')}\`. Null if there is none.`,
      ...metadata({ kind: 'relation', relation, target: served, maxPageSize }),
      async resolve(parent, _, context, info) {
        const waiting = beforeRelatedRead(served, context);
        if (waiting) await waiting;
        const key = from.map((column) => parent[column]);
        if (!key.every((value, index) => holds(projection, projection.keyColumns[index] as string, value))) return null; // both lists have the same length
        const [found] = await context.readModels.findByKeys(projection, [key], columnsOf(info));
        return found;
      },
    }),
  );
}

function addMany(
  builder: Builder,
  name: string,
  relation: ManyRelation & { readonly from: string },
  { row }: ProjectionTypes,
  target: ProjectionTypes,
  maxPageSize: number,
) {
  const { from, to, description } = relation;
  const { served, projection, connection } = target;
  const columnsOf = columnSelection(projection, [['edges', 'node'], ['nodes']]);
  builder.objectField(row, name, (t) =>
    t.field({
      type: connection,
      description:
        description ?? `The \`${projection.graphql.type}\` rows whose \`${to}\` is equal to \`${from}\` of this row.`,
      ...metadata({ kind: 'relation', relation, target: served, maxPageSize }),
      args: listArguments(builder, target, maxPageSize),
      async resolve(parent, args, context, info): Promise<Connection> {
        const waiting = beforeRelatedRead(served, context);
        if (waiting) await waiting;
        const { query, cursorOf } = listQuery(projection, args, columnsOf(info), maxPageSize, context.versions);
        await beforeFilter(context, query.where);
        const value = parent[from];
        if (!holds(projection, to, value)) return nothing(query);
        let page: Promise<RowPage> | undefined;
        return {
          page() {
            page ??= context.readModels.findRelated(projection, to, value, query);
            return page;
          },
          count: (upTo) => context.readModels.countRelated(projection, to, value, query.where, upTo),
          cursorOf,
        };
      },
    }),
  );
}

/**
 * Refuses relations in a subscription: it is notified only of changes of its own rows, so the related rows would become stale.
 *
 * @throws RefoldError `BAD_USER_INPUT`
 */
export function refuseRelations(
  projection: Projection,
  info: GraphQLResolveInfo,
  paths: readonly SelectionPath[],
): void {
  const relations = Object.entries(projection.relations).map(([name, { target }]) => [name, target] as const);
  const own = [...ownRelations(info.schema, projection)].map(
    ([name, targets]) => [name, targets.join(' or ')] as const,
  );
  if (relations.length + own.length === 0) return;
  const selected = selectedFields(info, paths);
  const found = [...relations, ...own].find(([name]) => selected.has(name));
  if (!found) return;
  const [relation, other] = found;
  throw badInput(
    `A subscription can't select '${relation}' of ${projection.graphql.type}: it would not notice when ${other} changes. Query it, or subscribe to ${other} as well.`,
  );
}

/** A connection without rows, with the page info of any other. */
function nothing({ direction, after, before }: PageQuery): Connection {
  const forward = direction === 'forward';
  return {
    page: async () => ({
      rows: [],
      hasNextPage: forward ? false : before !== null,
      hasPreviousPage: forward ? after !== null : false,
    }),
    count: async () => 0,
    cursorOf: () => '',
  };
}

/** Whether a row of the target may have the value: not null, and valid for its column. */
function holds(projection: Projection, column: string, value: unknown): boolean {
  return value !== null && columnHolds(projection.columns[column] as Column, value); // checked at startup
}
