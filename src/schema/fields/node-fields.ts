import type { InterfaceRef } from '@pothos/core';
import type { GraphQLResolveInfo } from 'graphql';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import type { Builder, Root, Types } from '../builder/builder.ts';
import { computedFrom } from '../builder/computed-fields.ts';
import { metadata } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput } from '../values/canonical-input.ts';
import { globalId, keyOfGlobalId, noGlobalId, parseGlobalId } from '../values/global-id.ts';
import { beforeRead } from './before-read.ts';

// The size of one statement's array for each projection; also the limit for a gateway's entities.
const maxIds = 1000;

/**
 * Adds Relay's global object identification: the field `id` of rows, the interface `Node`, and the queries `node(id)` and `nodes(ids)`. The
 * specification: https://relay.dev/graphql/objectidentification.htm
 */
export function addNodeFields(builder: Builder, names: TypeNames, projections: readonly ProjectionTypes[]): void {
  const identified = projections.filter(({ projection }) => projection.graphql.globalId);
  if (identified.length === 0) return;
  const typeOf = new WeakMap<object, string>();
  const node = builder.interfaceRef<Row>('Node').implement({
    description: 'A row that `node` can return.',
    fields: (t) => ({ id: t.id({ description: 'The id of the row among the rows of all types.', resolve: () => '' }) }), // each type resolves its own
    resolveType: (row) => typeOf.get(row) ?? null,
  });
  for (const types of identified) addId(builder, names, node, types);
  const find = createFinder(identified, typeOf);
  builder.queryField(names.claimField('Query', 'node', 'Refold'), (t) =>
    t.field({
      type: node,
      nullable: true,
      description: 'The row with this id. Null if there is none.',
      args: { id: t.arg.id({ required: true, description: 'The `id` of a row.' }) },
      async resolve(root, { id }, context, info) {
        const [found] = await find([id], root, context, info);
        return found;
      },
    }),
  );
  builder.queryField(names.claimField('Query', 'nodes', 'Refold'), (t) =>
    t.field({
      type: [node],
      nullable: { list: false, items: true },
      description: `The rows with these ids, in the same order. Null for an id without a row. At most ${maxIds}.`,
      args: { ids: t.arg.idList({ required: true, description: 'The `id` of each row.' }) },
      resolve: (root, { ids }, context, info) => {
        if (ids.length > maxIds) throw badInput(`'ids' names ${ids.length} rows; the limit is ${maxIds}.`);
        return find(ids, root, context, info);
      },
    }),
  );
}

function addId(
  builder: Builder,
  names: TypeNames,
  node: InterfaceRef<Types, Row>,
  { projection, row }: ProjectionTypes,
): void {
  const field = names.claimField(projection.graphql.type, 'id', 'Refold');
  computedFrom(projection, field, projection.keyColumns);
  builder.objectField(row, field, (t) =>
    t.id({
      description: 'The id of the row among the rows of all types, for `node`.',
      ...metadata({ kind: 'globalId' }),
      resolve: (values) => globalId(projection, values),
    }),
  );
  row.addInterfaces([node]);
}

type Find = (
  ids: readonly string[],
  root: Root | undefined,
  context: OperationContext,
  info: GraphQLResolveInfo,
) => Promise<(Row | null)[]>;

function createFinder(identified: readonly ProjectionTypes[], typeOf: WeakMap<object, string>): Find {
  const byName = new Map(
    identified.map((types) => [
      types.projection.name,
      { ...types, columnsOf: columnSelection(types.projection, [[]]) },
    ]),
  );
  type Found = typeof byName extends Map<string, infer T> ? T : never;

  return async (ids, root, context, info) => {
    const keys = new Map<Found, { readonly key: RowKey; readonly place: number }[]>();
    for (const [place, id] of ids.entries()) {
      const parsed = parseGlobalId(id);
      const types = parsed && byName.get(parsed.name);
      if (!types) throw noGlobalId(id);
      const key = keyOfGlobalId(types.projection, id, parsed);
      const known = keys.get(types);
      if (known) known.push({ key, place });
      else keys.set(types, [{ key, place }]);
    }
    // Wait for all before any read, because a read opens the operation's snapshot.
    await Promise.all([...keys.keys()].map(({ served }) => beforeRead(served, context, root?.after, info)));
    const rows = new Array<Row | null>(ids.length).fill(null);
    await Promise.all(
      [...keys].map(async ([{ projection, columnsOf }, wanted]) => {
        const found = await context.readModels.findByKeys(
          projection,
          wanted.map(({ key }) => key),
          columnsOf(info),
        );
        for (const [index, row] of found.entries()) {
          if (row) typeOf.set(row, projection.graphql.type);
          rows[wanted[index]?.place ?? 0] = row; // as many as requested
        }
      }),
    );
    return rows;
  };
}
