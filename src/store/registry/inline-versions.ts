import { sql } from 'kysely';
import { storedFilter } from '../../events/event-names.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { inlineGateKey, inlineVersionLockKey } from '../server/lock-keys.ts';
import { type ColumnsOf, type Queryable, refoldTables, run, runForOne } from '../statements/statement.ts';

/**
 * `live`: appends fold into it. `leaving`: new appends skip it, but some that entered before are still running. `building`: appends skip
 * it, and its processor folds the log.
 */
export type InlineStatus = 'building' | 'leaving' | 'live';

/** An inline version, as appends see it. */
export interface InlineVersion extends ColumnsOf<'refold.inline_versions', 'name' | 'version'> {
  readonly status: InlineStatus;
  /** Seconds since a writer that cannot fold ended its `live` status; null if none has. */
  readonly secondsSincePassed: number | null;
}

/** A SQL expression for the status of a row of `refold.inline_versions`. */
export function inlineStatus(row: string): string {
  return `case
          when ${row}.status = 'live' and exists (
            select from refold.inline_departures departure where departure.name = ${row}.name and departure.version = ${row}.version
          )
          then 'leaving'
          else ${row}.status
        end`;
}

/** Unique values that nothing checks at the moment. */
export interface UncheckedRule {
  readonly since: string;
  /** The event types whose appends are refused, such as `account.Opened`, by their names in the log. */
  readonly types: readonly string[];
  /** Whose appends are refused: everybody's, or only those of processes that declare the version, because it was never live. */
  readonly of: 'all' | 'declaring';
}

/** A rule that no other version of the projection holds. */
export interface OwnRule {
  readonly columns: readonly string[];
  /** The event types whose appends it checks, by their names in the log. */
  readonly types: readonly string[];
}

/** The rule that ends if a version is forgotten. Null if none ends. */
export async function readEndingRule(db: Queryable, name: string, version: number): Promise<OwnRule | null> {
  const [row] = await run(
    db,
    sql<OwnRule>`
      select unique_columns as columns, types
      from refold.inline_versions as own
      where name = ${name}
        and version = ${version}
        and rule <> 'pending'
        and not exists (
          select
          from refold.inline_versions as other
          where other.name = own.name and other.version <> own.version and other.unique_columns @> own.unique_columns
        )`,
  );
  return row ?? null;
}

/** SQL for the {@link UncheckedRule} of a row of `refold.inline_versions` as JSON, or null. */
export function uncheckedRule(row: string): string {
  return `case
          when ${row}.rule in ('declared', 'in force') and ${inlineStatus(row)} <> 'live'
          then json_build_object(
            'since', ${row}.changed_at,
            'types', ${row}.types,
            'of', case ${row}.rule when 'declared' then 'declaring' else 'all' end
          )
        end`;
}

/** Whose appends are refused because nothing checks the unique values of the version, since when, and what it waits for. None if they are checked. */
export function uncheckedText({
  name,
  version,
  unchecked,
}: Pick<InlineVersion, 'name' | 'version'> & { readonly unchecked: UncheckedRule | null }): string[] {
  if (!unchecked) return [];
  const { since, types, of } = unchecked;
  const writers = of === 'all' ? '' : ` by processes that declare ${name}@${version}`;
  return [
    `unique rule of ${name}@${version} is not being checked: appends of ${types.join(', ')}${writers} are refused since ${since}. It is checked again when the version commits with appends (inline: live).`,
  ];
}

export function readInlineVersions(db: Queryable): Promise<InlineVersion[]> {
  return db.query<InlineVersion>({
    name: 'read inline versions',
    text: `
      select
        name,
        version,
        ${inlineStatus('inline_versions')} as status,
        extract(epoch from clock_timestamp() - passed_at)::float8 as "secondsSincePassed"
      from refold.inline_versions`,
  });
}

/**
 * Makes the version known to appends, as `building`. If they know it already, its status stays. Its unique values are a rule for appends from now
 * on, or from its activation if the active version lacks the rule.
 */
export async function declareInline(db: Queryable, projection: Projection): Promise<void> {
  const { id, name, version } = projection;
  const filter = storedFilter(projection.families, projection.filter);
  const families = filter.map(({ family }) => family);
  const types = filter.flatMap((entry) => entry.types.map((type) => `${entry.family}.${type}`));
  await run(
    db,
    sql`
      insert into refold.inline_versions as known (name, version, families, types, unique_columns, lock_key, rule)
      select name, version, families, types, unique_columns, lock_key, case
        when unique_columns is null then null
        when exists (
          select
          from refold.projections as active
          left join refold.inline_versions as other using (name, version)
          where active.name = declared.name
            and active.state = 'active'
            and (active.version = declared.version) is not true
            and (other.unique_columns @> declared.unique_columns) is not true
        ) and not exists (
          select
          from refold.projections as own
          where own.name = declared.name and own.version = declared.version and own.state = 'active'
        ) then 'pending'
        else 'declared'
      end
      from (
        values (
          ${name}, ${version}::int, ${families}::text[], ${types}::text[], ${uniqueColumnsOf(projection)}::text[],
          ${inlineVersionLockKey(id)}::bigint
        )
      ) as declared (name, version, families, types, unique_columns, lock_key)
      on conflict (name, version) do update set
        families = excluded.families,
        types = excluded.types,
        unique_columns = excluded.unique_columns,
        rule = case
          when excluded.unique_columns is null then null
          else coalesce(known.rule, case when known.status = 'live' and excluded.rule = 'declared' then 'in force' else excluded.rule end)
        end`,
  );
}

function uniqueColumnsOf({ uniqueIndexes }: Projection): readonly string[] | null {
  return uniqueIndexes.length === 0 ? null : uniqueIndexes.map((columns) => columns.join(' within '));
}

/** Makes appends forget the version. If it is live, call {@link announceLeave} first, unless no process maintains it any more. */
export async function forgetInline(db: Queryable, name: string, version: number): Promise<void> {
  await run(
    db,
    refoldTables
      .with('forgotten', (forget) =>
        forget.deleteFrom('refold.inline_departures').where('name', '=', name).where('version', '=', version),
      )
      .deleteFrom('refold.inline_versions')
      .where('name', '=', name)
      .where('version', '=', version),
  );
}

/**
 * Makes new appends skip the version; see the migration. Does not wait. Call it outside of a transaction: appends see it when it commits.
 */
export async function announceLeave(db: Queryable, name: string, version: number): Promise<void> {
  await run(db, sql`select refold.announce_leave(${name}, ${version}, false)`);
}

/**
 * Completes a leave when all appends that entered before it have ended. The version is then `building`, and its table is complete up to its
 * checkpoint. A transaction of its own. Waits for no append. Appends may wait for it, so it waits only briefly for a row of the registry.
 *
 * @returns whether no append folds into the version any more
 */
export async function settleLeave(db: Queryable, name: string, version: number): Promise<boolean> {
  const [row] = await run(
    db,
    sql<{ settled: boolean }>`
      select refold.settle_inline(${name}, ${version}) as settled from set_config('lock_timeout', '100ms', true)`,
  ).catch((error: unknown) => {
    if (sqlStateOf(error) === lockNotAvailable) return [];
    throw error;
  });
  return row?.settled ?? false;
}

const lockNotAvailable = '55P03';

/** Prevents a version from becoming live until the transaction ends. @returns false if it is live already */
export async function keepFromLive(tx: Queryable, name: string, version: number): Promise<boolean> {
  const [row] = await run(
    tx,
    refoldTables
      .selectFrom('refold.inline_versions')
      .select('status')
      .where('name', '=', name)
      .where('version', '=', version)
      .forNoKeyUpdate(),
  );
  return row?.status !== 'live';
}

/** Limits the wait for each lock until the transaction ends, such as `100ms`. */
export async function limitLockWaits(tx: Queryable, timeout: string | null): Promise<void> {
  await run(tx, sql`set local lock_timeout to ${timeout === null ? sql`default` : sql.lit(timeout)}`);
}

/** Closes the gate: waits for all appending transactions, and blocks new ones until this transaction ends. */
export async function closeGate(tx: Queryable): Promise<void> {
  await run(tx, sql`select pg_advisory_xact_lock(${inlineGateKey})`);
}

/** Makes the version live. Its rows must be complete up to `checkpoint`, and the gate closed: appends fold into it from now on. */
export async function becomeLive(
  tx: Queryable,
  name: string,
  version: number,
  checkpoint: GlobalPosition,
): Promise<void> {
  await run(
    tx,
    sql`
      with moved as (
        update refold.processors
        set checkpoint = ${checkpoint}, epoch = epoch + 1, status = 'idle', owner = null, error = null, updated_at = now()
        where name = ${name} and version = ${version}
      ), left_before as (
        delete from refold.inline_departures where name = ${name} and version = ${version}
      ), live as (
        update refold.inline_versions
        set status = 'live', passed_at = null
        where name = ${name} and version = ${version}
      )
      select nextval('refold.inline_lives'), pg_notify('refold_registry', ${name}::text || '@' || ${version}::text)`,
  );
}

/**
 * Makes new versions live at once if the log is empty: there is nothing to fold, so no append goes without them. Does nothing if appends are under
 * way; the versions then become live like any other.
 */
export async function becomeLiveIfEmpty(
  tx: Queryable,
  versions: readonly { readonly name: string; readonly version: number }[],
): Promise<void> {
  if (versions.length === 0) return;
  const { free } = await runForOne(
    tx,
    sql<{ free: boolean }>`select pg_try_advisory_xact_lock(${inlineGateKey}) as free`,
  );
  const last = await readLast(tx);
  if (!free || last > 0n) return;
  for (const { name, version } of versions) await becomeLive(tx, name, version, last);
}

/** The highest assigned position. If the gate is closed or the version is held, all its events up to there are committed or rolled back. */
export async function readLast(tx: Queryable): Promise<GlobalPosition> {
  const { last } = await runForOne(
    tx,
    sql<{ last: GlobalPosition }>`select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as last`,
  );
  return last;
}
