import { createHash } from 'node:crypto';
import pluralize from 'pluralize';
import { invalidDeclaration, RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../events/event-family.ts';
import { checkTable, sqlNames } from './check-table.ts';
import type { Columns, KeyOf, RowInputOf, RowOf } from './column.ts';
import type { ActivationRule, ErrorPolicy, GraphqlNames, Projection, RowKey } from './projection.ts';
import { ownRelations, type RelationOption } from './relations.ts';
import { createRowCodec, type Row } from './row-codec.ts';

type OneOrMany<F extends EventFamily> = F | readonly F[];

type Evolve<F extends EventFamily, C extends Columns> = {
  readonly [T in EventTypeOf<F>]?: (
    row: RowOf<C> | null,
    event: RecordedEventOf<F, T>,
    key: KeyOf<C>,
  ) => RowInputOf<C> | null;
};

// TypeScript does not look for unknown columns in what an arrow function returns, nor for unknown keys of an inferred map. `unknown`
// where all is well: anything more precise would stand between the handlers and the types that they are inferred from.
type Checked<E, F extends EventFamily, C extends Columns> = [Problem<E, F, C>] extends [never]
  ? unknown
  : Problem<E, F, C>;
type Problem<E, F extends EventFamily, C extends Columns> = {
  [T in keyof E & string]: T extends EventTypeOf<F>
    ? E[T] extends (...args: never[]) => infer R
      ? UnknownColumn<R, C> extends infer U extends string
        ? `evolve.${T} returns '${U}', a column that the table does not declare`
        : never
      : never
    : `evolve handles '${T}', an event type that the events do not define`;
}[keyof E & string];
type UnknownColumn<R, C extends Columns> = R extends object ? Exclude<keyof R, keyof C> & string : never;

export interface ProjectionOptions<Name extends string, F extends EventFamily, C extends Columns, E> {
  /** snake_case; the same for all versions. */
  readonly name: Name;
  /** 1, 2, 3… Queries go to the highest active version. */
  readonly version: number;
  /** The event family, or families, that it reads. */
  readonly events: OneOrMany<F>;
  /** The read table's columns, made with {@link t}; at least one `primaryKey()`. */
  readonly table: C;
  /**
   * The row that an event touches: its key, or a list of keys where one event touches many rows (none: `[]` or null).
   * A composite key is an object of the key columns. Pure.
   */
  readonly key: (event: RecordedEventOf<F>) => KeyOf<C> | readonly KeyOf<C>[] | null;
  /**
   * Per event type, the row after the event; null removes the row (or makes none). Pure: never changes `row` or `event`,
   * reads no clock and no outside. Only the types named here are read from the log.
   */
  readonly evolve: E;
  /**
   * When a version that has caught up becomes active.
   * @default 'auto', as soon as at most 100 positions of the log are left
   */
  readonly activation?: 'auto' | 'manual' | Partial<ActivationRule>;
  /**
   * What becomes of an event that `key` or `evolve` fails on: `stop`, `skip` or `dead-letter`.
   * @default 'stop'
   */
  readonly onError?: ErrorPolicy['policy'] | ErrorPolicy;
  /** GraphQL names, where the derived ones (`CartSummary`, `cartSummary`, `cartSummaries`) do not read well. */
  readonly graphql?: Partial<GraphqlNames>;
  /**
   * Fields of the GraphQL type that lead to rows of other projections, made with {@link one} and {@link many}. They follow whichever
   * version of the other is served, so every version of it has the columns that they name. Changing them builds nothing anew.
   */
  readonly relations?: Readonly<Record<string, RelationOption<keyof C & string>>>;
  /** The GraphQL type's description. */
  readonly description?: string;
}

/**
 * Declares one version of a read model: the table, and how events change its rows.
 *
 * Refold makes the table, folds the whole log into it, keeps it current, and serves it over GraphQL once it is active.
 * To change a read model, declare the next `version` beside this one.
 *
 * @throws RefoldError `INVALID_DECLARATION` naming what to change.
 * @example
 * export const cartSummaryV1 = defineProjection({
 *   name: 'cart_summary',
 *   version: 1,
 *   events: cart,
 *   table: { cartId: t.text().primaryKey(), productItemsCount: t.integer() },
 *   key: (event) => event.streamId,
 *   evolve: {
 *     ProductItemAdded: (row, event) => ({ productItemsCount: (row?.productItemsCount ?? 0) + event.payload.quantity }),
 *   },
 * });
 */
export function defineProjection<
  const Name extends string,
  const F extends EventFamily,
  C extends Columns,
  E extends Evolve<F, C>,
>(
  options: Omit<ProjectionOptions<Name, F, C, E>, 'evolve'> & { readonly evolve: E & Checked<E, F, C> },
): Projection<Name, C> {
  const subject = `${options.name}@${options.version}`;
  checkOptions(subject, options);
  const families = (Array.isArray(options.events) ? options.events : [options.events]) as readonly F[]; // OneOrMany
  checkFamilies(subject, families);
  // Without a prototype: an event type may be called 'constructor'. The handlers are called with matching events only.
  const handlers: Readonly<Record<string, Handler>> = Object.assign(Object.create(null), options.evolve);
  const filter = eventFilter(subject, families, handlers);
  const keyColumns = checkTable(subject, options.table);
  const codec = declare(subject, () => createRowCodec(options.table, keyColumns));
  const composite = keyColumns.length > 1;
  const keyFunction = options.key as (event: RecordedEvent) => unknown; // called with this families' events only

  return Object.freeze({
    kind: 'projection',
    name: options.name,
    version: options.version,
    id: subject,
    ...(options.description === undefined ? {} : { description: options.description }),
    families,
    filter,
    columns: Object.freeze({ ...options.table }),
    keyColumns,
    tableName: `${options.name}_v${options.version}`,
    sqlNames: sqlNames(options.table),
    activation: activationRule(subject, options.activation),
    onError: errorPolicy(subject, options.onError),
    graphql: graphqlNames(subject, options.name, options.graphql),
    relations: ownRelations(subject, options.table, keyColumns, options.relations),
    codec,
    tableFingerprint: fingerprint(describeColumns(options.table)),
    codeFingerprint: fingerprint([
      keyFunction.toString(),
      Object.entries(handlers).map(([type, handler]) => [type, handler.toString()]),
      defaultsOf(options.table),
    ]),
    keysOf(event: RecordedEvent) {
      const result = keyFunction(event);
      if (result === null || result === undefined) return [];
      const keys = Array.isArray(result) ? result : [result];
      return keys.map((key) => codec.normaliseKey(composite ? keyColumns.map((name) => (key as Row)[name]) : [key])); // KeyOf of a composite key is an object
    },
    apply(row: Row | null, event: RecordedEvent, key: RowKey) {
      const handler = handlers[event.type];
      if (!handler) return row;
      const result = handler(
        row,
        event,
        composite ? Object.fromEntries(keyColumns.map((name, index) => [name, key[index]])) : key[0],
      );
      if (result === row || result === null) return result;
      if (typeof result !== 'object')
        throw new RefoldError(
          'INVALID_ROW',
          `evolve returned ${String(result)}; return the row, or null to remove it.`,
        );
      return codec.normalise(result, key);
    },
  } satisfies Projection<Name, C>);
}

type Handler = (row: Row | null, event: RecordedEvent, key: unknown) => Row | null;

const known = [
  'name',
  'version',
  'events',
  'table',
  'key',
  'evolve',
  'activation',
  'onError',
  'graphql',
  'relations',
  'description',
];

function checkOptions(
  subject: string,
  options: { readonly name: string; readonly version: number; readonly key: unknown; readonly evolve: object },
): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidDeclaration(subject, `unknown option '${name}'.${closest(name, known)}`);
  }
  // 'cart_summary_v12' must stay within PostgreSQL's 63 bytes, index names with it.
  if (!/^[a-z][a-z0-9_]{0,47}$/.test(options.name))
    throw invalidDeclaration(
      subject,
      `a projection is named in snake_case with at most 48 characters, such as 'cart_summary'.`,
    );
  if (/_v\d+$/.test(options.name))
    throw invalidDeclaration(
      subject,
      `leave the version out of the name: { name: '${options.name.replace(/_v\d+$/, '')}', version: … }.`,
    );
  if (!Number.isInteger(options.version) || options.version < 1 || options.version > 9999)
    throw invalidDeclaration(subject, 'a version is a whole number from 1 on.');
  if (typeof options.key !== 'function')
    throw invalidDeclaration(subject, `'key' is a function from an event to the key of its row.`);
  if (Object.keys(options.evolve).length === 0)
    throw invalidDeclaration(subject, 'evolve handles no event type; name at least one.');
}

function checkFamilies(subject: string, families: readonly EventFamily[]): void {
  if (families.length === 0)
    throw invalidDeclaration(subject, `'events' names no family; name the ones that it reads.`);
  if (families.some((family) => family?.kind !== 'event-family'))
    throw invalidDeclaration(subject, `'events' holds something that defineEvents did not make.`);
}

function eventFilter(subject: string, families: readonly EventFamily[], handlers: Readonly<Record<string, Handler>>) {
  const types = families.flatMap((family) => family.types);
  for (const [type, handler] of Object.entries(handlers)) {
    if (typeof handler !== 'function') throw invalidDeclaration(subject, `evolve.${type} is no function.`);
    const owners = families.filter((family) => family.types.includes(type));
    const names = families.map((family) => family.name).join(', ');
    if (owners.length === 0)
      throw invalidDeclaration(
        subject,
        `evolve handles '${type}', which ${names} does not define.${closest(type, types)}`,
      );
    if (owners.length > 1)
      throw invalidDeclaration(
        subject,
        `evolve handles '${type}', which ${owners.map((family) => family.name).join(' and ')} both define. Give the event types different names.`,
      );
  }
  const handled = families.map((family) => ({
    family: family.name,
    types: family.types.filter((type) => Object.hasOwn(handlers, type)),
  }));
  return Object.freeze(handled.filter((entry) => entry.types.length > 0));
}

function declare<T>(subject: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RefoldError && error.code === 'INVALID_ROW')
      throw invalidDeclaration(subject, `a default does not fit: ${error.message}`);
    throw error;
  }
}

function errorPolicy(subject: string, given: ErrorPolicy['policy'] | ErrorPolicy = 'stop'): ErrorPolicy {
  const policy = typeof given === 'string' ? { policy: given } : given;
  const policies = ['stop', 'skip', 'dead-letter'];
  if (!policies.includes(policy.policy)) {
    throw invalidDeclaration(subject, `onError is 'stop', 'skip' or 'dead-letter', found '${String(policy.policy)}'.`);
  }
  if (policy.onSkip && policy.policy !== 'skip') {
    throw invalidDeclaration(subject, `onError.onSkip belongs to the policy 'skip', found it with '${policy.policy}'.`);
  }
  return Object.freeze({ ...policy });
}

function activationRule(subject: string, rule: 'auto' | 'manual' | Partial<ActivationRule> = 'auto'): ActivationRule {
  // 100: at the head of a busy log a reader is always a few events behind; a first page of answers that old is fresh enough.
  const defaults = { by: 'auto' as const, maxLag: 100 };
  const full = { ...defaults, ...(typeof rule === 'string' ? { by: rule } : rule) };
  refuseUnknown(subject, 'activation', full, Object.keys(defaults));
  if (!['auto', 'manual'].includes(full.by))
    throw invalidDeclaration(subject, `activation is 'auto' or 'manual', found '${full.by}'.`);
  if (!Number.isInteger(full.maxLag) || full.maxLag < 0)
    throw invalidDeclaration(subject, `activation.maxLag is a number of positions, 0 or more, found ${full.maxLag}.`);
  return Object.freeze(full);
}

function graphqlNames(subject: string, name: string, given: Partial<GraphqlNames> = {}): GraphqlNames {
  const single = name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const plural = pluralize(single);
  const derived = {
    type: single.charAt(0).toUpperCase() + single.slice(1),
    single,
    list: plural === single ? `${single}List` : plural,
  };
  const full = { ...derived, ...given };
  refuseUnknown(subject, 'graphql', full, Object.keys(derived));
  for (const [part, value] of Object.entries(full)) {
    if (!/^(?!__)[_A-Za-z][_0-9A-Za-z]*$/.test(value))
      throw invalidDeclaration(subject, `graphql.${part} '${value}' is no GraphQL name; use letters, digits and _.`);
  }
  if (full.single === full.list)
    throw invalidDeclaration(subject, `graphql.single and graphql.list are both '${full.list}'; they need two names.`);
  return Object.freeze(full);
}

function refuseUnknown(subject: string, option: string, given: object, names: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!names.includes(name))
      throw invalidDeclaration(subject, `unknown option '${name}' of ${option}.${closest(name, names)}`);
  }
}

function describeColumns(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    type.kind === 'object'
      ? ['object', describeColumns(type.fields)]
      : type.kind === 'list'
        ? ['list', describeColumns({ item: type.item })]
        : type,
    [flags.nullable, flags.primaryKey, flags.index, flags.unique],
  ]);
}

/** Defaults go with the code: they fill in what `evolve` leaves out. */
function defaultsOf(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    flags.default,
    type.kind === 'object' ? defaultsOf(type.fields) : type.kind === 'list' ? defaultsOf({ item: type.item }) : [],
  ]);
}

function fingerprint(value: unknown): string {
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
