import { type Access, checkAccess } from '../../access.ts';
import { invalidDeclaration, RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { lastingFilter } from '../../events/event-names.ts';
import { beginning } from '../../events/global-position.ts';
import type { Columns } from '../columns/column.ts';
import { createRowCodec, type Row } from '../columns/row-codec.ts';
import { uniqueIndexes } from '../columns/unique-indexes.ts';
import { activationRule } from '../projection/activation-rule.ts';
import { historyParts } from '../projection/history.ts';
import { partitionsOption } from '../projection/partition.ts';
import {
  defaultStore,
  type ErrorPolicy,
  type EventFilter,
  type Projection,
  type RowKey,
} from '../projection/projection.ts';
import { ownRelations } from '../projection/relations.ts';
import type { SqlFold } from '../projection/sql-fold.ts';
import { tableHooks } from '../projection/table-hooks.ts';
import { checkTable, sqlNames } from './check-table.ts';
import { errorPolicy } from './error-policy.ts';
import { type Checked, type Evolve, eventFilter, type Handler } from './evolve-handlers.ts';
import { checkEvolveSql, type EvolveSql } from './evolve-sql.ts';
import { defaultsOf, describeTable, fingerprint } from './fingerprint.ts';
import { graphqlNames } from './graphql-names.ts';
import { hiddenColumns } from './hidden-values.ts';
import { checkFamilies, checkOptions, type EvolveOptions, type EvolveSqlOptions } from './projection-options.ts';
import { snapshotSchedule } from './snapshot-schedule.ts';

/**
 * Declares one version of a read model: its table, and how events change its rows.
 *
 * Refold creates the table, folds the whole log into it, keeps it current, and serves it over GraphQL when it is active. To change a read
 * model, declare the next `version` beside this one.
 *
 * @throws RefoldError `INVALID_DECLARATION` that names what to change.
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
>(options: EvolveOptions<Name, F, C, E & Checked<E, F, C>> | EvolveSqlOptions<Name, F, C>): Projection<Name, C> {
  const subject = `${options.name}@${options.version}`;
  checkOptions(subject, options);
  const families = (Array.isArray(options.events) ? options.events : [options.events]) as readonly F[]; // OneOrMany
  checkFamilies(subject, families);
  const keyColumns = checkTable(subject, options.table);
  const codec = declare(subject, () => createRowCodec(options.table, keyColumns));
  const onError = errorPolicy(subject, options.onError, options.mode);
  const form = options.evolveSql
    ? sqlForm(subject, families, options, keyColumns, onError)
    : evolveForm(subject, families, options.evolve);
  if (form.sqlFold && options.history !== undefined)
    throw invalidDeclaration(
      subject,
      `'history' folds the events of one row, and 'evolveSql' cannot do that. Leave 'history' out.`,
    );
  const composite = keyColumns.length > 1;
  const rowKey = (key: unknown) => codec.normaliseKey(composite ? keyColumns.map((name) => (key as Row)[name]) : [key]); // KeyOf of a composite key is an object
  const access = checkAccess(subject, options.table, keyColumns, options.access as Access | undefined); // the rules are those of these columns
  const keyFunction = (options.key ?? noKey) as (event: RecordedEvent) => unknown; // called only with events of these families

  return Object.freeze({
    kind: 'projection',
    name: options.name,
    version: options.version,
    id: subject,
    ...(options.description === undefined ? {} : { description: options.description }),
    families,
    filter: form.filter,
    columns: Object.freeze({ ...options.table }),
    keyColumns,
    uniqueIndexes: uniqueIndexes(options.table, keyColumns),
    tableName: `${options.name}_v${options.version}`,
    sqlNames: sqlNames(options.table),
    ...placeOf(options),
    activation: activationRule(subject, Object.keys(options.table), options.activation),
    onError,
    snapshots: snapshotSchedule(subject, options.snapshots),
    startAfter: options.startAfter ?? beginning,
    sunset: sunsetOf(subject, options.sunset),
    partitions: partitionsOption(subject, options.partitions, options),
    ...historyParts(subject, options, keyColumns, form.filter, codec),
    access,
    hidden: hiddenColumns(options.table, access),
    ...tableHooks(subject, options),
    graphql: graphqlNames(
      subject,
      options.name,
      'id' in options.table || 'id' in (options.relations ?? {}),
      options.graphql,
    ),
    relations: ownRelations(subject, options.table, keyColumns, options.relations),
    codec,
    sqlFold: form.sqlFold,
    tableFingerprint: fingerprint(describeTable(options.table, options.startAfter)),
    codeFingerprint: fingerprint([
      keyFunction.toString(),
      form.code,
      defaultsOf(options.table),
      ...(options.codeVersion === undefined ? [] : [String(options.codeVersion)]),
    ]),
    keysOf(event: RecordedEvent) {
      const result = keyFunction(event);
      if (result === null || result === undefined) return [];
      if (typeof result === 'string') return [codec.normaliseKey([result])]; // the common case: avoids creating lists
      if (!Array.isArray(result)) return [rowKey(result)];
      return result.map(rowKey);
    },
    apply(row: Row | null, event: RecordedEvent, key: RowKey) {
      if (form.sqlFold)
        throw new RefoldError(
          'INVALID_DECLARATION',
          `${subject} folds with evolveSql, in PostgreSQL only. 'proveEqual' of refold/testing runs it on events.`,
        );
      const handler = form.handlers[event.type];
      if (!handler) return row;
      const [given, givenKey] = [row && codec.forEvolve(row), codec.keyForEvolve(key)];
      const result = handler(given, event, composite ? namedKey(keyColumns, givenKey) : givenKey[0]);
      if (result === given) return row;
      if (result === null) return null;
      if (typeof result !== 'object')
        throw new RefoldError(
          'INVALID_ROW',
          `evolve returned ${String(result)}; return the row, or null to remove it.`,
        );
      return codec.normalise(result, key, row);
    },
  } satisfies Projection<Name, C>);
}

/** When its rows are written, and where. */
function placeOf({
  mode = 'async',
  store,
}: Partial<Pick<Projection, 'mode' | 'store'>>): Pick<Projection, 'mode' | 'store' | 'namesStore'> {
  return { mode, store: store ?? defaultStore, namesStore: store !== undefined };
}

/** What either form declares about its events. */
interface Form {
  readonly filter: readonly EventFilter[];
  readonly sqlFold: SqlFold | null;
  readonly handlers: Readonly<Record<string, Handler>>;
  /** The input of the code fingerprint. */
  readonly code: unknown;
}

function evolveForm(subject: string, families: readonly EventFamily[], evolve: object): Form {
  // Without a prototype, because an event type may be called 'constructor'. The handlers are called with matching events only.
  const handlers: Readonly<Record<string, Handler>> = Object.assign(Object.create(null), evolve);
  const filter = eventFilter(subject, families, handlers);
  const code = Object.entries(handlers).map(([type, handler]) => [lastingType(families, type), handler.toString()]);
  return { filter, sqlFold: null, handlers, code: withUpcasters(code, families, filter) };
}

function sqlForm(
  subject: string,
  families: readonly EventFamily[],
  options: { readonly table: Columns; readonly evolveSql: object; readonly key?: unknown },
  keyColumns: readonly string[],
  { policy }: ErrorPolicy,
): Form {
  if (policy === 'dead-letter' && options.key === undefined)
    throw invalidDeclaration(
      subject,
      `onError 'dead-letter' with evolveSql needs 'key': if the SQL fails on an event, only 'key' knows the row whose later events must wait.`,
    );
  const { fold, filter } = checkEvolveSql(
    subject,
    families,
    options.table,
    keyColumns,
    options.evolveSql as EvolveSql<EventFamily, Columns>, // its type is unknown here; this checks it
  );
  const code = withUpcasters([lastingFilter(families, filter), fold], families, filter);
  return { filter, sqlFold: fold, handlers: Object.create(null), code };
}

/** Adds the code of upcasters, if there are any: versions without them keep their fingerprints. */
function withUpcasters(code: unknown, families: readonly EventFamily[], filter: readonly EventFilter[]): unknown {
  const upcasters = filter.flatMap(({ family: name, types }) => {
    const family = families.find((one) => one.name === name);
    return types.flatMap((type) => {
      const steps = family?.upcasters[type] ?? [];
      return family && steps.length > 0 ? [[family.storedName, lastingType([family], type), steps.map(String)]] : [];
    });
  });
  return upcasters.length === 0 ? code : { code, upcasters };
}

/** The name under which the log keeps a handled type: renaming a type is no edit of the code. */
function lastingType(families: readonly EventFamily[], type: string): string {
  return families.find((family) => family.types.includes(type))?.typeNames[type]?.[0] ?? type;
}

const noKey = () => null;

function namedKey(keyColumns: readonly string[], key: RowKey): Row {
  const named: Record<string, unknown> = {};
  for (let index = 0; index < keyColumns.length; index++) named[keyColumns[index] as string] = key[index]; // index < length
  return named;
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

function sunsetOf(subject: string, sunset: string | undefined): Date | null {
  if (sunset === undefined) return null;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(sunset) || Number.isNaN(Date.parse(sunset)))
    throw invalidDeclaration(subject, `'sunset' is a day such as '2027-01-31', found '${sunset}'.`);
  return new Date(sunset);
}
