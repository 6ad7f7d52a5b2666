import type { ObjectRef } from '@pothos/core';
import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { Row } from '../projections/columns/row-codec.ts';
import type { Builder, Types } from './builder/builder.ts';
import { computedFrom } from './builder/computed-fields.ts';
import type { TypeNames } from './builder/type-names.ts';
import type { ProjectionTypes } from './types/projection-types.ts';

/** The tools with which an application extends its schema. */
export interface SchemaTools {
  /** The Pothos builder of the generated schema, for your own types, queries, mutations and subscriptions. */
  readonly builder: Builder;
  /** Returns the object type of a projection's rows, by the projection's name, such as `cart_summary`. */
  rowType(projection: string): ObjectRef<Types, Row>;
  /**
   * Adds a field to a projection's rows that is computed from columns. Only selected columns are read from the table, so `needs` lists the
   * columns that the resolver uses.
   *
   * @example
   * rowField('cart_summary', 'isLarge', ['totalAmount'], (t) =>
   * t.boolean({ resolve: (row) => (row.totalAmount as Decimal).gt(1000) }));
   */
  rowField(projection: string, field: string, needs: readonly string[], make: RowFieldMaker): void;
}

export type RowFieldMaker = Parameters<Builder['objectField']>[2];

/** Additions to the generated schema. Created by {@link extendSchema}. */
export interface SchemaExtension {
  readonly kind: 'schema-extension';
  readonly extend: (tools: SchemaTools) => void;
}

/**
 * Adds the application's own types, fields and resolvers to the generated schema, with the same builder. It is called for each schema that
 * is built, so it must always add the same. Resolvers get the operation's context: `readModels` (with the viewer's access rules),
 * `commands`, `viewer`.
 *
 * @example
 * export default defineConfig({
 * schema: extendSchema(({ builder }) => {
 * builder.queryField('serverTime', (t) => t.string({ resolve: () => new Date().toISOString() }));
 * }),
 * …
 * });
 */
export function extendSchema(extend: (tools: SchemaTools) => void): SchemaExtension {
  return Object.freeze({ kind: 'schema-extension', extend });
}

/** @throws RefoldError `INVALID_DECLARATION` if it extends a projection or uses a column that does not exist */
export function applyExtension(
  { extend }: SchemaExtension,
  builder: Builder,
  names: TypeNames,
  projections: readonly ProjectionTypes[],
): void {
  const typesOf = (name: string): ProjectionTypes => {
    const found = projections.find(({ projection }) => projection.name === name);
    if (found) return found;
    const known = projections.map(({ projection }) => projection.name);
    throw invalidDeclaration('extendSchema', `there is no projection '${name}'.${closest(name, known)}`);
  };
  extend({
    builder,
    rowType: (name) => typesOf(name).row,
    rowField(name, field, needs, make) {
      const { projection, row } = typesOf(name);
      const owner = `extendSchema, field '${field}'`;
      if (Object.hasOwn(projection.columns, field) || Object.hasOwn(projection.relations, field))
        throw invalidDeclaration(owner, `${projection.id} has a column or relation of that name already.`);
      for (const column of needs) {
        if (!Object.hasOwn(projection.columns, column))
          throw invalidDeclaration(
            owner,
            `${projection.id} has no column '${column}'.${closest(column, Object.keys(projection.columns))} Every version that may answer has to have it.`,
          );
      }
      computedFrom(projection, names.claimField(projection.graphql.type, field, owner), needs);
      builder.objectField(row, field, make);
    },
  });
}
