import type { ObjectRef } from '@pothos/core';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { RowPage } from '../../projections/queries/row-query.ts';
import type { Builder, Types } from '../builder/builder.ts';
import { metadata } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';
import { badInput } from '../values/canonical-input.ts';

/** A page that is read once, and only if one of its fields is selected. */
export interface Connection {
  page(): Promise<RowPage>;
  /** Counts the rows. `upTo` limits the count; null counts all. */
  count(upTo: number | null): Promise<number>;
  cursorOf(row: Row): string;
}

interface Edge {
  readonly row: Row;
  readonly connection: Connection;
}

/** The position of a page in its list. */
export interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  startCursor(): string | null;
  endCursor(): string | null;
}

export interface ConnectionTypes {
  readonly connection: ObjectRef<Types, Connection>;
}

const pageInfoTypes = new WeakMap<Builder, ObjectRef<Types, PageInfo>>();

/** The connection and edge types of a projection, according to the Relay specification, with `nodes` in addition to `edges`. */
export function connectionOf(
  builder: Builder,
  names: TypeNames,
  row: ObjectRef<Types, Row>,
  { graphql, id }: Projection,
): ObjectRef<Types, Connection> {
  const edge = builder.objectRef<Edge>(names.claim(`${graphql.type}Edge`, id)).implement({
    description: `A \`${graphql.type}\` in a list, with its cursor.`,
    fields: (t) => ({
      cursor: t.string({
        description: 'The position of this row in the list, for `after` and `before`.',
        ...metadata({ kind: 'cursor' }),
        resolve: ({ connection, row }) => connection.cursorOf(row),
      }),
      node: t.field({
        type: row,
        description: 'The row.',
        ...metadata({ kind: 'node' }),
        resolve: (edge) => edge.row,
      }),
    }),
  });
  return builder.objectRef<Connection>(names.claim(`${graphql.type}Connection`, id)).implement({
    description: `A page of \`${graphql.type}\` rows.`,
    fields: (t) => ({
      edges: t.field({
        type: [edge],
        description: 'The rows with their cursors.',
        ...metadata({ kind: 'edges' }),
        resolve: async (connection) => (await connection.page()).rows.map((row) => ({ row, connection })),
      }),
      nodes: t.field({
        type: [row],
        description: 'The rows without their cursors.',
        ...metadata({ kind: 'nodes' }),
        resolve: async (connection) => (await connection.page()).rows,
      }),
      pageInfo: t.field({
        type: pageInfoOf(builder),
        description: 'Whether there are more rows, and the cursors of this page.',
        ...metadata({ kind: 'pageInfo' }),
        resolve: async (connection) => pageInfo(await connection.page(), connection.cursorOf),
      }),
      totalCount: t.int({
        description: 'The number of rows in all pages. Counted only if it is selected.',
        ...metadata({ kind: 'totalCount' }),
        args: {
          upTo: t.arg.int({
            required: false,
            description:
              'Stops counting at this number: a result equal to it means this many or more. Default: counts all rows, which takes longer for a longer list.',
          }),
        },
        resolve: (connection, { upTo }) => connection.count(boundOf(upTo)),
      }),
    }),
  });
}

/** The type of `pageInfo`, shared by all lists of a schema. */
export function pageInfoOf(builder: Builder): ObjectRef<Types, PageInfo> {
  const known = pageInfoTypes.get(builder);
  if (known) return known;
  const type = builder.objectRef<PageInfo>('PageInfo').implement({
    description: 'Information about a page of a list, as defined by Relay.',
    fields: (t) => ({
      hasNextPage: t.boolean({
        description: 'Whether there are rows after this page.',
        ...metadata({ kind: 'hasNextPage' }),
        resolve: (info) => info.hasNextPage,
      }),
      hasPreviousPage: t.boolean({
        description: 'Whether there are rows before this page.',
        ...metadata({ kind: 'hasPreviousPage' }),
        resolve: (info) => info.hasPreviousPage,
      }),
      startCursor: t.string({
        description: 'The cursor of the first row. Null if the page is empty.',
        nullable: true,
        ...metadata({ kind: 'startCursor' }),
        resolve: (info) => info.startCursor(),
      }),
      endCursor: t.string({
        description: 'The cursor of the last row, for the next page. Null if the page is empty.',
        nullable: true,
        ...metadata({ kind: 'endCursor' }),
        resolve: (info) => info.endCursor(),
      }),
    }),
  });
  pageInfoTypes.set(builder, type);
  return type;
}

/** Returns the limit of a count; null counts all. @throws RefoldError `BAD_USER_INPUT` */
export function boundOf(upTo: number | null | undefined): number | null {
  if (upTo === null || upTo === undefined) return null;
  if (upTo < 1) throw badInput(`'upTo' is ${upTo}; count up to 1 at least.`);
  return upTo;
}

/** Returns the page info. Cursors are computed only if they are selected. */
export function pageInfo<T>(
  { rows, hasNextPage, hasPreviousPage }: Omit<RowPage, 'rows'> & { readonly rows: readonly T[] },
  cursorOf: (row: T) => string,
): PageInfo {
  const cursor = (row: T | undefined) => (row === undefined ? null : cursorOf(row));
  return {
    hasNextPage,
    hasPreviousPage,
    startCursor: () => cursor(rows[0]),
    endCursor: () => cursor(rows.at(-1)),
  };
}
