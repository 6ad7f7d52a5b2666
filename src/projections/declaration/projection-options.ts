import type { Access } from '../../access.ts';
import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { EventFamily, RecordedEventOf } from '../../events/event-family.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Columns, KeyOf } from '../columns/column.ts';
import type { ActivationOptions } from '../projection/activation-rule.ts';
import type { HistoryOption } from '../projection/history.ts';
import {
  defaultStore,
  type ErrorPolicy,
  type GraphqlNames,
  type ProjectionMode,
  type SnapshotSchedule,
} from '../projection/projection.ts';
import type { RelationOption } from '../projection/relations.ts';
import type { TableHook } from '../projection/table-hooks.ts';
import type { EvolveSql } from './evolve-sql.ts';

type OneOrMany<F extends EventFamily> = F | readonly F[];

/** Options of every projection, in either form. */
export interface CommonOptions<Name extends string, F extends EventFamily, C extends Columns> {
  /** The name of the projection, in snake_case. All versions share it. */
  readonly name: Name;
  /** A whole number starting at 1. Queries go to the highest active version. */
  readonly version: number;
  /** The event family or families that the projection reads. */
  readonly events: OneOrMany<F>;
  /** The columns of the read table, created with {@link t}. At least one must be a `primaryKey()`. */
  readonly table: C;
  /**
   * When the rows are written. `async`: after the append commits, usually within milliseconds. `inline`: in the transaction of the append,
   * so a read after the append sees the rows. With `inline`, each append costs more, and appends to the same row wait for each other. With
   * `onError: 'stop'`, an append is refused if `evolve` fails on its event. `inline` does not work with `evolveSql`. A new inline version
   * is first built asynchronously. It joins the appends when it has caught up. Changing the mode rebuilds nothing.
   * @default 'async'
   */
  readonly mode?: ProjectionMode;
  /**
   * The read store that holds the version: its rows, its checkpoint and everything else of it. A name of `readStores` in the configuration. It
   * is built there, and stays there; the next version can name another store. Not with mode `inline`.
   * @default 'default': the database of the log
   */
  readonly store?: string;
  /**
   * When a version that has caught up becomes active.
   * @default 'auto': as soon as it is at most 100 positions behind the head of the log, unless it would break what clients can query
   */
  readonly activation?: 'auto' | 'manual' | ActivationOptions;
  /**
   * Identifies the code that builds the rows. Refold compares the text of `key` and `evolve`, but cannot see the functions that they call.
   * Change this value when those functions change, for example by using a hash of their file. Refold then notices an edit under the same
   * version.
   * @default none
   */
  readonly codeVersion?: string | number;
  /**
   * What happens when `key`, `evolve` or `evolveSql` fails on an event: `stop`, `skip` or `dead-letter`.
   * It may be tried again before that: {@link ErrorPolicy.retries}.
   * @default 'stop', without retries
   */
  readonly onError?: ErrorPolicy['policy'] | ErrorPolicy;
  /**
   * Takes a snapshot of the read table every `everyEvents` events, for `refold rebuild --from-snapshot`, and keeps the newest ones. A
   * snapshot is a copy of the table. Choose `everyEvents` so high that folding that many events costs much more than the copy.
   * @default no automatic snapshots; `keep` is 3
   */
  readonly snapshots?: Pick<SnapshotSchedule, 'everyEvents'> & Partial<SnapshotSchedule>;
  /**
   * Who may read which rows and columns over GraphQL: `public`, `authenticated`, or rules ({@link AccessRules}, {@link tenant}). The rules
   * apply to every way to read a row: single-row lookups, lists, aggregates, relations, payloads and subscriptions. Changing them rebuilds
   * nothing.
   * @default 'authenticated' if the configuration has `auth`, else 'public'
   */
  readonly access?: Access<C>;
  /**
   * The position after which the version begins. Earlier events are never folded into it, in builds, rebuilds, comparisons with the log and
   * past states alike. Its table is partial, and says so in status, schema and SQL. It does not replace a version that begins earlier by itself.
   * Use it if an old part of the log does not matter, or would take too long to fold. A change needs a new version. Not with mode `inline`.
   * @default the beginning of the log: the table is whole
   * @example globalPosition('1042')
   */
  readonly startAfter?: GlobalPosition;
  /**
   * The day on which you plan to retire the version, such as `'2027-01-31'`. Clients that pin the version receive it in the `Sunset`
   * header. Refold does nothing on that day.
   * @default none
   */
  readonly sunset?: string;
  /**
   * Creates triggers, further indexes or helper views. Runs after a table of the version is created, in the same transaction. A rebuild
   * creates another table, beside the one in use. If it fails, the start or the rebuild request fails and leaves nothing behind. A change
   * takes effect with the next table.
   * @default nothing
   */
  readonly setUp?: TableHook;
  /**
   * Removes what `setUp` created outside of the table. Runs before such a table is dropped, in the same transaction. Indexes and triggers
   * of the table are dropped with it. Keep the version declared until its table is dropped, one day after it was retired. A process that
   * does not declare the version drops only the table, and cannot if something depends on it.
   * @default nothing
   */
  readonly tearDown?: TableHook;
  /**
   * The number of owners that process the projection at the same time. Each owner processes the rows whose keys belong to its partition,
   * and reads the log on its own. Use it if one process cannot keep the projection current, or takes too long to build it. A process that
   * starts with another number changes it; nothing is rebuilt. From 1 to 64. Not with unique columns.
   * @default 1
   */
  readonly partitions?: number;
  /**
   * GraphQL names, if the derived ones (`CartSummary`, `cartSummary`, `cartSummaries`) do not read well, and whether rows have a global id.
   */
  readonly graphql?: Partial<GraphqlNames>;
  /**
   * Fields of the GraphQL type that lead to rows of other projections, created with {@link one} and {@link many}. A relation follows the
   * served version of the other projection, so every version of that projection must have the named columns. Changing relations rebuilds
   * nothing.
   */
  readonly relations?: Readonly<Record<string, RelationOption<keyof C & string>>>;
  /** The GraphQL type's description. */
  readonly description?: string;
}

/** A projection that folds one event at a time. */
export interface EvolveOptions<Name extends string, F extends EventFamily, C extends Columns, E>
  extends CommonOptions<Name, F, C> {
  /**
   * The key of the row that an event changes, or a list of keys if it changes several rows. `[]` or null if it changes none. A composite
   * key is an object of the key columns. Pure.
   */
  readonly key: KeyFunction<F, C>;
  /**
   * Per event type, a function that returns the row after the event. Null removes the row, or creates none. Pure: it must not change `row`
   * or `event`, read the clock or do I/O. Only the types named here are read from the log.
   */
  readonly evolve: E;
  /**
   * Where the events of a row are stored: `true` if the row's key is the id of their stream, or a function from the key to that id. Clients
   * can then read a past state of a row (`asOf`) and the events behind it (`cartSummaryEvents`). All events that change the row must be in
   * that one stream (of each family that the projection reads). Rules (`{ stream, access, payload }`) also say who may read the events, and
   * what of their payloads: nothing of them if the projection sets `access`, unless a rule opens it.
   * @default false
   */
  readonly history?: HistoryOption<C, NoInfer<F>>;
  readonly evolveSql?: never;
}

/** A projection that folds whole batches in PostgreSQL, for heavy aggregates. It has the same guarantees as folding one event at a time. */
export interface EvolveSqlOptions<Name extends string, F extends EventFamily, C extends Columns>
  extends CommonOptions<Name, F, C> {
  /** SQL over the batch, merged into the table with one statement. Test it against an `evolve` with `proveEqual` of `refold/testing`. */
  readonly evolveSql: EvolveSql<F, C>;
  /**
   * The keys of the rows that an event changes, as `rows` returns them. Needed with `onError: 'dead-letter'`, and used only if `rows` fails on an
   * event before its keys are known: later events of these rows then wait. Without failures, the SQL decides which rows an event changes,
   * and payloads of commands offer no
   * rows of this projection.
   * @default none
   */
  readonly key?: KeyFunction<F, C>;
  readonly evolve?: never;
  readonly history?: never;
}

type KeyFunction<F extends EventFamily, C extends Columns> = (
  event: RecordedEventOf<F>,
) => KeyOf<C> | readonly KeyOf<C>[] | null;

/** The options of {@link defineProjection}, in either form. */
export type ProjectionOptions<Name extends string, F extends EventFamily, C extends Columns, E> =
  | EvolveOptions<Name, F, C, E>
  | EvolveSqlOptions<Name, F, C>;

const known = [
  'name',
  'version',
  'events',
  'table',
  'key',
  'evolve',
  'evolveSql',
  'mode',
  'store',
  'activation',
  'snapshots',
  'codeVersion',
  'onError',
  'access',
  'history',
  'startAfter',
  'sunset',
  'setUp',
  'tearDown',
  'partitions',
  'graphql',
  'relations',
  'description',
];

const versionSuffix = /_v\d+(_[gs]\d+)?$/;

/** @throws RefoldError `INVALID_DECLARATION` */
export function checkOptions(
  subject: string,
  options: {
    readonly name: string;
    readonly version: number;
    readonly key?: unknown;
    readonly evolve?: object | undefined;
    readonly evolveSql?: object | undefined;
    readonly mode?: unknown;
    readonly store?: unknown;
    readonly partitions?: unknown;
    readonly startAfter?: unknown;
  },
): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidDeclaration(subject, `unknown option '${name}'.${closest(name, known)}`);
  }
  // 'cart_summary_v12' and the names of its indexes must fit into PostgreSQL's limit of 63 bytes.
  if (!/^[a-z][a-z0-9_]{0,47}$/.test(options.name))
    throw invalidDeclaration(
      subject,
      `a projection is named in snake_case with at most 48 characters, such as 'cart_summary'.`,
    );
  // The view has this name. Tables of other versions are named like it: `cart_v1_g2` after a rebuild, `cart_v1_s3` as a snapshot.
  if (versionSuffix.test(options.name))
    throw invalidDeclaration(
      subject,
      `leave the version out of the name: { name: '${options.name.replace(versionSuffix, '')}', version: … }.`,
    );
  if (!Number.isInteger(options.version) || options.version < 1 || options.version > 9999)
    throw invalidDeclaration(subject, 'a version is a whole number from 1 on.');
  if (options.evolve && options.evolveSql)
    throw invalidDeclaration(
      subject,
      `declares both 'evolve' and 'evolveSql'; keep one, and prove it equal to the other in a test.`,
    );
  if (!options.evolve && !options.evolveSql)
    throw invalidDeclaration(subject, `declares neither 'evolve' nor 'evolveSql'; declare one of them.`);
  if (typeof options.key !== 'function' && !(options.evolveSql && options.key === undefined))
    throw invalidDeclaration(subject, `'key' is a function from an event to the key of its row.`);
  checkMode(subject, options);
  const { startAfter = beginning } = options;
  if (typeof startAfter !== 'bigint' || startAfter < beginning)
    throw invalidDeclaration(
      subject,
      `'startAfter' is a position, such as globalPosition('1042'), found ${String(startAfter)}.`,
    );
  if (options.evolve && Object.keys(options.evolve).length === 0)
    throw invalidDeclaration(subject, 'evolve handles no event type; name at least one.');
}

function checkMode(
  subject: string,
  {
    mode,
    store,
    evolveSql,
    partitions,
    startAfter,
  }: { mode?: unknown; store?: unknown; evolveSql?: unknown; partitions?: unknown; startAfter?: unknown },
): void {
  if (mode !== undefined && mode !== 'async' && mode !== 'inline')
    throw invalidDeclaration(subject, `'mode' is 'async' or 'inline', found '${String(mode)}'.`);
  if (store !== undefined && typeof store !== 'string')
    throw invalidDeclaration(subject, `'store' is a name of 'readStores', found ${String(store)}.`);
  if (mode !== 'inline') return;
  if (store !== undefined && store !== defaultStore)
    throw invalidDeclaration(
      subject,
      `mode 'inline' writes rows in the transaction of the append, and the store '${store}' is another database than that of the log. Leave 'store' out, or the mode.`,
    );
  if (evolveSql)
    throw invalidDeclaration(
      subject,
      `mode 'inline' folds the events of one append, and 'evolveSql' folds batches. Declare 'evolve', or leave the mode out.`,
    );
  if (startAfter !== undefined && startAfter !== beginning)
    throw invalidDeclaration(
      subject,
      `mode 'inline' is for rows that commands rely on, and with 'startAfter' the table is partial. Leave 'startAfter' out, or the mode.`,
    );
  if (partitions !== undefined && partitions !== 1)
    throw invalidDeclaration(
      subject,
      `mode 'inline' has no processor to partition, because appends fold the events. Leave 'partitions' out, or the mode.`,
    );
}

/** @throws RefoldError `INVALID_DECLARATION` */
export function checkFamilies(subject: string, families: readonly EventFamily[]): void {
  if (families.length === 0)
    throw invalidDeclaration(subject, `'events' names no family; name those that the projection reads.`);
  if (families.some((family) => family?.kind !== 'event-family'))
    throw invalidDeclaration(subject, `'events' holds something that defineEvents did not make.`);
}
