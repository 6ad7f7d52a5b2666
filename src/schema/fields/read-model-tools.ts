import type { ObjectRef } from '@pothos/core';
import type { GraphQLResolveInfo } from 'graphql';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Column } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import { ownFields } from '../analysis/own-fields.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import { walkFields } from '../analysis/selection-walk.ts';
import type { Builder, Types } from '../builder/builder.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import { type ListArguments, listArguments, listQuery } from '../input/list-arguments.ts';
import { checkOwnColumns, checkOwnOrder, misused, ownValue, ownWhere } from '../input/own-query.ts';
import { rowFilter } from '../input/where.ts';
import type { Connection } from '../types/connection.ts';
import type { WhereInput } from '../types/filter-types.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput, columnHolds, keyArgument } from '../values/canonical-input.ts';
import { beforeFilter, beforeOwnRead } from './before-read.ts';
import { connect } from './query-fields.ts';

/** What an application's read requires in addition to the client's selection. */
export interface OwnReadOptions {
  /** The columns that the resolver uses itself, in addition to the selected ones. @default none */
  readonly needs?: readonly string[];
  /** A position that the row must include, such as the `position` of a command's result. @default none */
  readonly after?: GlobalPosition;
}

/** Which rows, in the form of the arguments of the generated lists: `where`, `orderBy`, `first`, `after`, `last`, `before`. */
export type OwnQuery = ListArguments;

/**
 * Types and reads of one read model, for the application's own fields. The reads take the context and the info of the resolver: they read the
 * columns that the client selected, from the snapshot and under the access rules of its operation, and wait for the positions that it requires.
 *
 * Values in `where` and in keys have the form in which clients write them, such as `'20.00'` for a decimal, or that of rows. Any column can be used.
 */
export interface ReadModelTools {
  /** The object type of the rows, for the `type` of a field. */
  readonly rowType: ObjectRef<Types, Row>;
  /** The connection type of the rows, for the `type` of a field that returns {@link ReadModelTools.findConnection}. */
  readonly connectionType: ObjectRef<Types, Connection>;
  /** The arguments of a connection: `where`, `orderBy`, `first`, `after`, `last`, `before`. */
  readonly connectionArgs: ReturnType<typeof listArguments>;
  /** Returns the row with the key, such as `{ cartId: 'cart-1' }`; null if there is none, or if a part of the key is null. */
  findByKey(
    key: Row,
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: OwnReadOptions,
  ): Promise<Row | null>;
  /** Returns the rows with the keys, in their order; null for a key without a row. Concurrent reads share statements. */
  findByKeys(
    keys: readonly Row[],
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: OwnReadOptions,
  ): Promise<readonly (Row | null)[]>;
  /** Returns a list of rows: the first 20, if `first` and `last` say nothing. */
  findRows(
    query: OwnQuery,
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: OwnReadOptions,
  ): Promise<readonly Row[]>;
  /**
   * Returns a list like {@link ReadModelTools.findRows}, of the rows whose column has the value. Use it in a field of a row: concurrent reads that
   * differ only in the value share a statement. The column should have an index.
   */
  findRelated(
    column: string,
    value: unknown,
    query: OwnQuery,
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: OwnReadOptions,
  ): Promise<readonly Row[]>;
  /** Returns a page of rows, with cursors and `totalCount`. Its query can be the field's arguments. */
  findConnection(
    query: OwnQuery,
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: OwnReadOptions,
  ): Promise<Connection>;
  /** Counts the rows that match; all of them, if `where` is null. */
  count(
    where: WhereInput | null,
    context: OperationContext,
    info: GraphQLResolveInfo,
    options?: Pick<OwnReadOptions, 'after'>,
  ): Promise<number>;
}

export function readModelTools(builder: Builder, types: ProjectionTypes, maxPageSize: number): ReadModelTools {
  const { served, projection } = types;
  const rowColumns = columnSelection(projection, [[]]);
  const pageColumns = columnSelection(projection, [['edges', 'node'], ['nodes']]);

  async function begin(context: OperationContext, info: GraphQLResolveInfo, options: OwnReadOptions): Promise<void> {
    refuseBelowSubscription(types, info);
    const waiting = beforeOwnRead(served, context, options.after, info);
    if (waiting) await waiting;
  }

  function withNeeded(columns: readonly string[], { needs = [] }: OwnReadOptions): readonly string[] {
    if (needs.length === 0) return columns;
    checkOwnColumns(projection, 'needs', needs);
    return [...new Set([...columns, ...needs])];
  }

  async function query(given: OwnQuery, context: OperationContext, columns: readonly string[]) {
    const where = given.where && ownWhere(projection, given.where, context.versions);
    if (given.orderBy) checkOwnOrder(projection, given.orderBy);
    const found = listQuery(projection, { ...given, where }, columns, maxPageSize, context.versions);
    await beforeFilter(context, found.query.where);
    return found;
  }

  async function findByKeys(
    keys: readonly Row[],
    context: OperationContext,
    info: GraphQLResolveInfo,
    options: OwnReadOptions = {},
  ): Promise<readonly (Row | null)[]> {
    const asked = keys.map((key) => keyOf(types, key));
    await begin(context, info, options);
    const complete = asked.filter((key) => key !== null);
    const rows = await context.readModels.findByKeys(projection, complete, withNeeded(rowColumns(info), options));
    const next = rows.values();
    return asked.map((key) => (key === null ? null : (next.next().value ?? null)));
  }

  return {
    rowType: types.row,
    connectionType: types.connection,
    connectionArgs: listArguments(builder, types, maxPageSize),
    findByKeys,
    async findByKey(key, context, info, options) {
      const [row = null] = await findByKeys([key], context, info, options);
      return row;
    },
    async findRows(given, context, info, options = {}) {
      await begin(context, info, options);
      const asked = await query(given, context, withNeeded(rowColumns(info), options));
      const { rows } = await context.readModels.findPage(projection, asked.query);
      return rows;
    },
    async findRelated(column, value, given, context, info, options = {}) {
      checkOwnColumns(projection, 'findRelated', [column]);
      if (value === undefined) throw misused(projection, `findRelated: the value of '${column}' is undefined.`);
      await begin(context, info, options);
      const asked = await query(given, context, withNeeded(rowColumns(info), options));
      if (value === null || !columnHolds(projection.columns[column] as Column, value)) return []; // checked above
      const { rows } = await context.readModels.findRelated(projection, column, value, asked.query);
      return rows;
    },
    async findConnection(given, context, info, options = {}) {
      await begin(context, info, options);
      const asked = await query(given, context, withNeeded(pageColumns(info), options));
      return connect(types, context, asked.query, asked.cursorOf);
    },
    async count(where, context, info, options = {}) {
      await begin(context, info, options);
      const given = where && ownWhere(projection, where, context.versions);
      const filter = rowFilter(projection, given, context.versions);
      await beforeFilter(context, filter);
      return context.readModels.count(projection, filter);
    },
  };
}

/** Returns null if a part of the key is null: no row has it. */
function keyOf({ projection }: ProjectionTypes, key: Row): RowKey | null {
  const { keyColumns } = projection;
  const names = Object.keys(key);
  if (names.length !== keyColumns.length || keyColumns.some((name) => key[name] === undefined)) {
    const found = names.map((name) => (key[name] === undefined ? `${name}: undefined` : name)).join(', ');
    throw misused(projection, `the key is { ${keyColumns.join(', ')} }, found { ${found} }.`);
  }
  if (keyColumns.some((name) => key[name] === null)) return null;
  const values = keyColumns.map((name) => [name, ownValue(projection.columns[name] as Column, key[name])]); // there is a column for each
  return keyArgument(projection, Object.fromEntries(values));
}

/**
 * Refuses reads below a generated subscription: it is notified only of changes of its own rows. A subscription of the application decides itself
 * when it sends something.
 */
function refuseBelowSubscription({ projection }: ProjectionTypes, info: GraphQLResolveInfo): void {
  const { operation, fragments, schema, fieldName, parentType } = info;
  if (operation.operation !== 'subscription') return;
  let root = '';
  walkFields(operation.selectionSet, fragments, ({ name }) => {
    root = name.value;
    return 'next';
  });
  const field = schema.getSubscriptionType()?.getFields()[root];
  if (field && ownFields(schema).roots.has(field)) return;
  throw badInput(
    `A subscription can't select '${fieldName}' of ${parentType.name}: it would not notice when ${projection.name} changes. Query it, or subscribe to ${projection.name} as well.`,
  );
}
