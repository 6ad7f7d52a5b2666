import type { RowKey } from '../../projections/declaration/projection.ts';
import { discardText } from '../../projections/fold/discarded.ts';
import type { Queryable } from '../postgres/statement.ts';
import type { DeadLetter } from './dead-letters.ts';

export interface Discarding {
  readonly name: string;
  readonly version: number;
  readonly actor: string;
  readonly reason: string;
}

/** Records that these events are discarded for their rows. */
export async function insertDiscards(
  tx: Queryable,
  { name, version, actor, reason }: Discarding,
  letterIds: readonly bigint[],
): Promise<void> {
  await tx.query({
    text: `
      insert into refold.discards (name, version, position, key, event_type, stream_id, actor, reason)
      select $1, $2, position, coalesce(key, 'null'), event_type, stream_id, $4, $5
      from refold.dead_letters
      where id = any ($3)
      on conflict (name, version, position, key) do update
      set recalled_at = null, actor = excluded.actor, reason = excluded.reason, at = excluded.at`,
    values: [name, version, letterIds, actor, reason],
  });
}

/** The discarded events, as {@link discardText} writes them. */
export async function readDiscards(db: Queryable, name: string, version: number): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ position: bigint; key: RowKey | null }>({
    text: 'select position, key from refold.discards where name = $1 and version = $2 and recalled_at is null',
    values: [name, version],
  });
  return new Set(rows.map(({ position, key }) => discardText(position, key)));
}

/** An event that was discarded for a row. */
export interface Discard extends Pick<DeadLetter, 'key' | 'position' | 'type' | 'streamId' | 'at'> {
  /** The version, such as `cart_summary@2`. */
  readonly of: string;
  readonly actor: string;
  readonly reason: string;
}

/** The discards of one version or of all versions, in log order. */
export async function listDiscards(db: Queryable, name?: string, version?: number): Promise<Discard[]> {
  return db.query<Discard>({
    text: `
      select name || '@' || version as of, nullif(key, 'null') as key, position, event_type as type, stream_id as "streamId", actor, reason, at
      from refold.discards
      where ($1::text is null or name = $1) and ($2::integer is null or version = $2) and recalled_at is null
      order by name, version, position, key`,
    values: [name ?? null, version ?? null],
  });
}

/** Recalls discards, only those of one row if a key is given: the next fold of the log applies these events. Returns how many. */
export async function recallDiscards(tx: Queryable, name: string, version: number, key?: string): Promise<number> {
  const rows = await tx.query({
    text: `
      update refold.discards
      set recalled_at = clock_timestamp()
      where name = $1 and version = $2 and recalled_at is null and ($3::jsonb is null or key = $3)
      returning position`,
    values: [name, version, key ?? null],
  });
  return rows.length;
}

/** Deletes recalled discards that the version's table now contains: those recalled before its fold began (`begunAt`, or now). */
export async function forgetRecalled(tx: Queryable, name: string, version: number, begunAt?: string): Promise<void> {
  await tx.query({
    text: `
      delete from refold.discards
      where name = $1 and version = $2 and recalled_at < coalesce($3::timestamptz, clock_timestamp())`,
    values: [name, version, begunAt ?? null],
  });
}

/** Deletes all discards of a version. */
export async function deleteDiscards(tx: Queryable, name: string, version: number): Promise<void> {
  await tx.query({ text: 'delete from refold.discards where name = $1 and version = $2', values: [name, version] });
}
