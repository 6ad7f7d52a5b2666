import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';
import { inlineGateKey, inlineVersionLockKey } from '../server/lock-keys.ts';

/**
 * `live`: appends fold into it. `leaving`: they leave it alone, and those that had entered before are not all over. `building`: they leave
 * it alone, and its processor folds the log.
 */
export type InlineStatus = 'building' | 'leaving' | 'live';

/** An inline version, as all appends see it. */
export interface InlineVersion {
  readonly name: string;
  readonly version: number;
  readonly status: InlineStatus;
  /** Since a writer that can't fold has put it out of `live`; null where none has. */
  readonly secondsSincePassed: number | null;
}

/** SQL for the status of a row of `refold.inline_versions`. */
export function inlineStatus(row: string): string {
  return `case
          when ${row}.status = 'live' and exists (
            select from refold.inline_departures departure where departure.name = ${row}.name and departure.version = ${row}.version
          )
          then 'leaving'
          else ${row}.status
        end`;
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

/** Has appends know the version from now on, as `building`; it keeps its status where they know it already. */
export async function declareInline(db: Queryable, { id, name, version, filter }: Projection): Promise<void> {
  await db.query({
    text: `
      insert into refold.inline_versions (name, version, families, lock_key)
      values ($1, $2, $3, $4)
      on conflict (name, version) do update set families = excluded.families`,
    values: [name, version, filter.map(({ family }) => family), inlineVersionLockKey(id)],
  });
}

/** Has appends forget the version. Where it is live, {@link announceLeave} comes first, unless nobody maintains it any more. */
export async function forgetInline(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: `
      with forgotten as (
        delete from refold.inline_departures where name = $1 and version = $2
      )
      delete from refold.inline_versions where name = $1 and version = $2`,
    values: [name, version],
  });
}

/**
 * Has appends leave the version alone from now on, where they fold into it; see the migration. Waits for nobody. Outside of a transaction,
 * or appends hear of it only when that ends.
 */
export async function announceLeave(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({ text: 'select refold.announce_leave($1, $2, false)', values: [name, version] });
}

/**
 * Ends a leave once the appends are over that had entered before it was announced: the version is `building`, its table complete up to its
 * checkpoint. Waits for nobody, and is a transaction of its own.
 *
 * @returns whether no append folds into the version any more
 */
export async function settleLeave(db: Queryable, name: string, version: number): Promise<boolean> {
  const [row] = await db.query<{ settled: boolean }>({
    text: 'select refold.settle_inline($1, $2) as settled',
    values: [name, version],
  });
  return row?.settled ?? false;
}

/** Keeps a version that no append folds into from becoming live before the transaction ends. @returns false where appends fold into it */
export async function keepFromLive(tx: Queryable, name: string, version: number): Promise<boolean> {
  const [row] = await tx.query<{ status: InlineVersion['status'] }>({
    text: `
      select status
      from refold.inline_versions
      where name = $1 and version = $2
      for no key update`,
    values: [name, version],
  });
  return row?.status !== 'live';
}

/** How long each lock is waited for until the transaction ends, such as `100ms`. */
export async function limitLockWaits(tx: Queryable, timeout: string): Promise<void> {
  await tx.query({ text: `set local lock_timeout = '${timeout}'` });
}

/** Closes the gate: waits for all transactions that append, and has new ones wait for this transaction. */
export async function closeGate(tx: Queryable): Promise<void> {
  await tx.query({ text: 'select pg_advisory_xact_lock($1)', values: [inlineGateKey] });
}

/** The version's rows are complete up to `checkpoint`, and the gate is closed: appends fold into it from now on. */
export async function becomeLive(
  tx: Queryable,
  name: string,
  version: number,
  checkpoint: GlobalPosition,
): Promise<void> {
  await tx.query({
    text: `
      with moved as (
        update refold.processors
        set checkpoint = $3, epoch = epoch + 1, status = 'idle', owner = null, error = null, updated_at = now()
        where name = $1 and version = $2
      ), left_before as (
        delete from refold.inline_departures where name = $1 and version = $2
      ), live as (
        update refold.inline_versions
        set status = 'live', passed_at = null
        where name = $1 and version = $2
      )
      select nextval('refold.inline_lives'), pg_notify('refold_registry', $1::text || '@' || $2::text)`,
    values: [name, version, checkpoint],
  });
}

/** The last position that was drawn; with the gate closed, or the version held, all that is wanted up to it is committed or rolled back. */
export async function readLast(tx: Queryable): Promise<GlobalPosition> {
  const [row] = await tx.query<{ last: GlobalPosition }>({
    text: `select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as last`,
  });
  if (!row) throw new Error('a select without a table gives one row');
  return row.last;
}
