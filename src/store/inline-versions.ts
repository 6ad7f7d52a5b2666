import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection } from '../projections/projection.ts';
import { inlineGateKey, inlineVersionLockKey } from './lock-keys.ts';
import type { Queryable } from './statement.ts';

/** An inline version, as all appends see it. */
export interface InlineVersion {
  readonly name: string;
  readonly version: number;
  /** `live`: appends fold into it. `building`: they leave it alone, and its processor folds the log. */
  readonly status: 'building' | 'live';
  /** Since a writer that can't fold has put it out of `live`; null where none has. */
  readonly secondsSincePassed: number | null;
}

export function readInlineVersions(db: Queryable): Promise<InlineVersion[]> {
  return db.query<InlineVersion>({
    name: 'read inline versions',
    text: `
      select
        name,
        version,
        status,
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

/** Has appends forget the version. Where it is live, {@link leaveInline} comes first, unless nobody maintains it any more. */
export async function forgetInline(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: 'delete from refold.inline_versions where name = $1 and version = $2',
    values: [name, version],
  });
}

/**
 * Puts the version out of `live`, where it is, within a transaction: its table is the fold of all that is committed, its processor goes on
 * from there, and appends leave it alone from the transaction's end on. Waits for the appends that are folding into it, and those that come
 * meanwhile wait for this transaction; so it comes before anything else that the transaction locks, and the transaction is short.
 *
 * @returns whether it was live
 */
export async function leaveInline(tx: Queryable, name: string, version: number): Promise<boolean> {
  await tx.query({ text: `set local lock_timeout = '${foldersTimeout}'` });
  const [row] = await tx.query<{ left: boolean }>({
    text: 'select refold.leave_inline($1, $2, false) as left',
    values: [name, version],
  });
  return row?.left ?? false;
}

/**
 * As {@link leaveInline}, in a transaction of its own, for a step that follows and takes long: appends go on without the version meanwhile,
 * and it does not join them again before the step has begun.
 */
export async function leaveInlineAhead(tx: Queryable, name: string, version: number): Promise<void> {
  if (!(await leaveInline(tx, name, version))) return;
  // It joins five seconds after that; one second is enough for the step to lock the version, which keeps it from joining.
  await tx.query({
    text: `
      update refold.inline_versions
      set passed_at = clock_timestamp() - interval '4 seconds'
      where name = $1 and version = $2`,
    values: [name, version],
  });
}

// An append in a transaction of the user's own may stay open for long, and others wait behind whoever waits for it.
const foldersTimeout = '5s';

/**
 * Keeps appends from folding into the version, where it is live, until the transaction ends, for work on its rows that leaves it live.
 * Waits as {@link leaveInline}.
 *
 * @returns the position up to which its table is complete; undefined where it is not live
 */
export async function holdInline(
  tx: Queryable,
  { id, name, version }: Pick<Projection, 'id' | 'name' | 'version'>,
): Promise<GlobalPosition | undefined> {
  if (!(await isLive(tx, name, version))) return undefined;
  await tx.query({ text: `set local lock_timeout = '${foldersTimeout}'` });
  await tx.query({ text: 'select pg_advisory_xact_lock($1)', values: [inlineVersionLockKey(id)] });
  if (!(await isLive(tx, name, version))) return undefined;
  return readLast(tx);
}

/** Closes the gate: waits for all transactions that append, and has new ones wait for this transaction. */
export async function closeGate(tx: Queryable, timeout: string): Promise<void> {
  await tx.query({ text: `set local lock_timeout = '${timeout}'` });
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

async function isLive(tx: Queryable, name: string, version: number): Promise<boolean> {
  const rows = await tx.query({
    text: `select from refold.inline_versions where name = $1 and version = $2 and status = 'live'`,
    values: [name, version],
  });
  return rows.length > 0;
}
