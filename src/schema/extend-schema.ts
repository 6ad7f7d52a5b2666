import { invalidDeclaration } from '../errors.ts';
import { refuseUnknownKeys } from '../projections/projection/refuse-unknown.ts';
import type { BuilderPlugins, BuilderTypes, BuilderWith, TypesWith } from './builder/builder.ts';
import type { OperationContext } from './contract/operation-context.ts';
import type { ReadModelTools } from './fields/read-model-tools.ts';

/** The tools with which an application extends its schema. */
export interface SchemaTools<C extends object = object, T extends BuilderTypes = object> {
  /**
   * The Pothos builder of the generated schema, for your own types, queries, mutations and subscriptions. The latter three have the option
   * `access`: `'public'`, `'authenticated'` (the default if the configuration has `auth`), or a function of the viewer and the arguments.
   */
  readonly builder: BuilderWith<C, T>;
  /**
   * Returns types and reads of a read model, by the projection's name, such as `cart_summary`.
   *
   * @example
   * const carts = readModel('cart_summary');
   * builder.queryField('myCart', (t) => t.field({
   *   type: carts.rowType,
   *   nullable: true,
   *   resolve: (_root, _args, context, info) => carts.findByKey({ cartId: 'cart-1' }, context, info),
   * }));
   */
  readModel(projection: string): ReadModelTools;
  /**
   * Adds a field to a projection's rows that is computed from columns. Only selected columns are read from the table, so `needs` lists the
   * columns that the resolver uses.
   *
   * @example
   * rowField('cart_summary', 'isLarge', ['totalAmount'], (t) =>
   * t.boolean({ resolve: (row) => (row.totalAmount as Decimal).gt(1000) }));
   */
  rowField(projection: string, field: string, needs: readonly string[], make: RowFieldMaker<C, T>): void;
}

export type RowFieldMaker<C extends object = object, T extends BuilderTypes = object> = Parameters<
  BuilderWith<C, T>['objectField']
>[2];

/** Plugins of Pothos and additions to the context, for {@link extendSchema}. */
export interface ExtensionOptions<C extends object = object, T extends BuilderTypes = object> {
  /**
   * Plugins of Pothos: the names that their packages export by default. They see the generated fields, too. A generated field that a plugin wraps
   * is answered by the executor, not by a compiled query.
   *
   * @default none
   */
  readonly plugins?: readonly string[];
  /** The options of the plugins, as they are given to a Pothos builder, such as `scopeAuth`. */
  readonly pluginOptions?: Partial<Omit<PothosSchemaTypes.SchemaBuilderOptions<TypesWith<C, T>>, FixedOption>>;
  /**
   * Returns what resolvers find in their context in addition to {@link OperationContext}. It is called for each operation that runs resolvers,
   * and again for a query that is executed again. It can't replace what the context has.
   */
  readonly context?: (operation: OperationContext) => C | Promise<C>;
}

/** Options of the builder on which the generated schema depends. */
const fixedOptions = ['plugins', 'defaults', 'defaultFieldNullability', 'defaultInputFieldRequiredness'] as const;
type FixedOption = (typeof fixedOptions)[number] | 'notStrict';

/** Additions to the generated schema. Created by {@link extendSchema}. */
export interface SchemaExtension extends BuilderPlugins {
  readonly kind: 'schema-extension';
  readonly extend: (tools: SchemaTools) => unknown;
  readonly context: ((operation: OperationContext) => object | Promise<object>) | undefined;
}

/**
 * Adds the application's own types, fields and resolvers to the generated schema, with the same builder. It is called for each schema that
 * is built, so it must be synchronous and must always add the same; a start checks both. Resolvers get the operation's context: `readModels`
 * (with the viewer's access rules), `commands`, `viewer`.
 *
 * @throws RefoldError `INVALID_DECLARATION` for an option that does not exist, or a plugin that does not fit
 * @example
 * export default defineConfig({
 * schema: extendSchema(({ builder }) => {
 * builder.queryField('serverTime', (t) => t.string({ resolve: () => new Date().toISOString() }));
 * }),
 * …
 * });
 */
export function extendSchema(extend: (tools: SchemaTools) => void): SchemaExtension;
/** Also adds plugins of Pothos, and values to the context. `T` are types for the builder, such as `{ AuthScopes: { admin: boolean } }`. */
export function extendSchema<C extends object = object, T extends BuilderTypes = object>(
  options: ExtensionOptions<C, T>,
  extend: (tools: SchemaTools<C, T>) => void,
): SchemaExtension;
export function extendSchema(
  ...given: readonly [(tools: SchemaTools) => void] | readonly [ExtensionOptions, (tools: SchemaTools) => void]
): SchemaExtension {
  const [options, extend] = given.length === 1 ? [{}, given[0]] : given;
  const subject = 'extendSchema';
  if (typeof extend !== 'function') throw invalidDeclaration(subject, 'it needs a function that adds to the schema.');
  refuseUnknownKeys(subject, 'extendSchema', options, ['plugins', 'pluginOptions', 'context']);
  const { plugins = [], pluginOptions = {}, context } = options;
  if (context !== undefined && typeof context !== 'function')
    throw invalidDeclaration(subject, "'context' is a function of the operation that returns an object.");
  for (const plugin of plugins) refuseConflict(plugin);
  for (const name of fixedOptions)
    if (Object.hasOwn(pluginOptions, name))
      throw invalidDeclaration(subject, `'pluginOptions' can't set '${name}': the generated schema depends on it.`);
  return Object.freeze({ kind: 'schema-extension', extend, plugins, pluginOptions, context });
}

/** Plugins that define what the generated schema has, with what to use instead. */
const conflicts: Readonly<Record<string, string>> = {
  relay: "Rows have an 'id', and connections are there: use 'connectionType' and 'connectionArgs' of readModel(…).",
  federation: "Set 'gateway: { federation: true }'; read models are entities then.",
};

function refuseConflict(plugin: string): void {
  const instead = Object.hasOwn(conflicts, plugin) ? conflicts[plugin] : undefined;
  if (instead === undefined) return;
  const problem = `the plugin '${plugin}' defines types that the generated schema has already. ${instead}`;
  throw invalidDeclaration('extendSchema', problem);
}
