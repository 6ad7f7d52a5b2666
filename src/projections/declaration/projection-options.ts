import type { Access } from '../../access.ts';
import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { EventFamily, RecordedEventOf } from '../../events/event-family.ts';
import type { Columns, KeyOf } from '../columns/column.ts';
import type { ActivationOptions } from './activation-rule.ts';
import type { EvolveSql } from './evolve-sql.ts';
import type { HistoryOption } from './history.ts';
import type { ErrorPolicy, GraphqlNames, ProjectionMode, SnapshotSchedule } from './projection.ts';
import type { RelationOption } from './relations.ts';
import type { TableHook } from './table-hooks.ts';

type OneOrMany<F extends EventFamily> = F | readonly F[];

/** What every projection declares, however it folds. */
export interface CommonOptions<Name extends string, F extends EventFamily, C extends Columns> {
  /** snake_case; the same for all versions. */
  readonly name: Name;
  /** 1, 2, 3… Queries go to the highest active version. */
  readonly version: number;
  /** The event family, or families, that it reads. */
  readonly events: OneOrMany<F>;
  /** The read table's columns, made with {@link t}; at least one `primaryKey()`. */
  readonly table: C;
  /**
   * When its rows are written. `async`: behind the append, usually within milliseconds. `inline`: in the append's own transaction, so that
   * whoever reads after an append sees its rows; each append costs more, appends to the same row wait for each other, and an append whose
   * event `evolve` fails on is refused (with `onError: 'stop'`). Not with `evolveSql`. A version that is declared anew is built behind
   * the appends first, and joins them once it has caught up. Changing it builds nothing anew.
   * @default 'async'
   */
  readonly mode?: ProjectionMode;
  /**
   * When a version that has caught up becomes active.
   * @default 'auto', as soon as at most 100 positions of the log are left, and unless it would break what clients can ask for
   */
  readonly activation?: 'auto' | 'manual' | ActivationOptions;
  /**
   * Says which code builds the rows, beside the text of `key` and `evolve`, which is looked at anyway: functions that they call are not
   * seen. Change it with those, such as by a hash of their file, and an edit under the same version is noticed.
   * @default none
   */
  readonly codeVersion?: string | number;
  /**
   * What becomes of an event that `key`, `evolve` or `evolveSql` fails on: `stop`, `skip` or `dead-letter` (not with `evolveSql`).
   * @default 'stop'
   */
  readonly onError?: ErrorPolicy['policy'] | ErrorPolicy;
  /**
   * Takes a snapshot of the read table after so many events, for `refold rebuild --from-snapshot`, and keeps the newest. A snapshot is a
   * copy of the table: choose `everyEvents` so that copying it costs little beside folding that many.
   * @default none are taken by themselves; `keep` is 3
   */
  readonly snapshots?: Pick<SnapshotSchedule, 'everyEvents'> & Partial<SnapshotSchedule>;
  /**
   * Who may read which rows and columns over GraphQL: `public`, `authenticated`, or rules ({@link AccessRules}, {@link tenant}). They hold
   * for every way to a row: look-ups, lists, aggregates, relations, payloads and subscriptions. Changing them builds nothing anew.
   * @default 'authenticated' where the configuration has `auth`, else 'public'
   */
  readonly access?: Access<C>;
  /**
   * The day on which the version will be retired, such as `'2027-01-31'`: told in the header `Sunset` to clients that pin it.
   * Nothing happens by itself on that day.
   * @default none
   */
  readonly sunset?: string;
  /**
   * Runs in the transaction that makes a table of the version, after it: for triggers, further indexes, helper views. A rebuild makes another
   * table, beside the one that serves. What fails here fails the start, or the request of the rebuild, and leaves nothing behind.
   * Changing it takes effect with the next table.
   * @default nothing
   */
  readonly setUp?: TableHook;
  /**
   * Runs in the transaction that drops such a table, before it: for what `setUp` made outside of the table. Indexes and triggers of the
   * table go with it by themselves. Keep the version declared until its table is dropped, a day after it was retired: a process that does
   * not declare it drops the table alone, and can't where something depends on it.
   * @default nothing
   */
  readonly tearDown?: TableHook;
  /**
   * By how many owners it is processed at the same time, each with the rows whose keys belong to its part: for a projection that one
   * process can't keep current, or takes too long to build. Each reads the log for itself. A process that starts with another number changes
   * it, with nothing built anew. From 1 to 64; not with `evolveSql`, nor with unique columns.
   * @default 1
   */
  readonly partitions?: number;
  /** GraphQL names, where the derived ones (`CartSummary`, `cartSummary`, `cartSummaries`) do not read well, and whether rows have a global id. */
  readonly graphql?: Partial<GraphqlNames>;
  /**
   * Fields of the GraphQL type that lead to rows of other projections, made with {@link one} and {@link many}. They follow whichever
   * version of the other is served, so every version of it has the columns that they name. Changing them builds nothing anew.
   */
  readonly relations?: Readonly<Record<string, RelationOption<keyof C & string>>>;
  /** The GraphQL type's description. */
  readonly description?: string;
}

/** A projection that folds event by event. */
export interface EvolveOptions<Name extends string, F extends EventFamily, C extends Columns, E>
  extends CommonOptions<Name, F, C> {
  /**
   * The row that an event touches: its key, or a list of keys where one event touches many rows (none: `[]` or null).
   * A composite key is an object of the key columns. Pure.
   */
  readonly key: KeyFunction<F, C>;
  /**
   * Per event type, the row after the event; null removes the row (or makes none). Pure: never changes `row` or `event`,
   * reads no clock and no outside. Only the types named here are read from the log.
   */
  readonly evolve: E;
  /**
   * Where the events of a row are found: `true` where the row's key is the id of their stream, or a function from the key to that id. With it
   * clients ask for a row as it was (`asOf`) and for the events that made it (`cartSummaryEvents`). All events that touch the row must be in
   * that one stream (of each family that the projection reads).
   * @default false
   */
  readonly history?: HistoryOption<C>;
  readonly evolveSql?: never;
}

/** A projection that folds whole batches in PostgreSQL: for heavy aggregates. Same guarantees as event by event. */
export interface EvolveSqlOptions<Name extends string, F extends EventFamily, C extends Columns>
  extends CommonOptions<Name, F, C> {
  /** SQL over the batch, merged into the table with one statement. `proveEqual` of `refold/testing` holds it against an `evolve`. */
  readonly evolveSql: EvolveSql<F, C>;
  /** Which row a command's payload shows; `evolveSql` itself has no need of it. @default none */
  readonly key?: KeyFunction<F, C>;
  readonly evolve?: never;
  readonly history?: never;
}

type KeyFunction<F extends EventFamily, C extends Columns> = (
  event: RecordedEventOf<F>,
) => KeyOf<C> | readonly KeyOf<C>[] | null;

/** What {@link defineProjection} takes: either form. */
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
  'activation',
  'snapshots',
  'codeVersion',
  'onError',
  'access',
  'history',
  'sunset',
  'setUp',
  'tearDown',
  'partitions',
  'graphql',
  'relations',
  'description',
];

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
    readonly partitions?: unknown;
  },
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
  if (options.evolve && options.evolveSql)
    throw invalidDeclaration(
      subject,
      `declares both 'evolve' and 'evolveSql'; keep one, and prove it equal to the other in a test.`,
    );
  if (!options.evolve && !options.evolveSql)
    throw invalidDeclaration(subject, `declares neither 'evolve' nor 'evolveSql'; one of them makes its rows.`);
  if (typeof options.key !== 'function' && !(options.evolveSql && options.key === undefined))
    throw invalidDeclaration(subject, `'key' is a function from an event to the key of its row.`);
  checkMode(subject, options);
  if (options.evolve && Object.keys(options.evolve).length === 0)
    throw invalidDeclaration(subject, 'evolve handles no event type; name at least one.');
}

function checkMode(
  subject: string,
  { mode, evolveSql, partitions }: { mode?: unknown; evolveSql?: unknown; partitions?: unknown },
): void {
  if (mode !== undefined && mode !== 'async' && mode !== 'inline')
    throw invalidDeclaration(subject, `'mode' is 'async' or 'inline', found '${String(mode)}'.`);
  if (mode !== 'inline') return;
  if (evolveSql)
    throw invalidDeclaration(
      subject,
      `mode 'inline' folds the events of one append, which 'evolveSql' is not for. Declare 'evolve', or leave the mode out.`,
    );
  if (partitions !== undefined && partitions !== 1)
    throw invalidDeclaration(
      subject,
      `mode 'inline' has no processor to divide: appends themselves fold. Leave 'partitions' out, or the mode.`,
    );
}

/** @throws RefoldError `INVALID_DECLARATION` */
export function checkFamilies(subject: string, families: readonly EventFamily[]): void {
  if (families.length === 0)
    throw invalidDeclaration(subject, `'events' names no family; name the ones that it reads.`);
  if (families.some((family) => family?.kind !== 'event-family'))
    throw invalidDeclaration(subject, `'events' holds something that defineEvents did not make.`);
}
