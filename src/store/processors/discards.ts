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

/** Remembers that these events are thrown away for their rows. */
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

/** What was thrown away, as {@link discardText} writes it. */
export async function readDiscards(db: Queryable, name: string, version: number): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ position: bigint; key: RowKey | null }>({
    text: 'select position, key from refold.discards where name = $1 and version = $2 and recalled_at is null',
    values: [name, version],
  });
  return new Set(rows.map(({ position, key }) => discardText(position, key)));
}

/** An event that was thrown away for a row. */
export interface Discard extends Pick<DeadLetter, 'key' | 'position' | 'type' | 'streamId' | 'at'> {
  /** Such as `cart_summary@2`. */
  readonly of: string;
  readonly actor: string;
  readonly reason: string;
}

/** Of one version, or of all of them; in the order of the log. */
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

/** Takes back what was thrown away, of one row where a key is given: the next fold of the log takes it in. Gives how many. */
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

/** The version's table is one that was begun at that time, or now: it has what had been recalled by then. */
export async function forgetRecalled(tx: Queryable, name: string, version: number, begunAt?: string): Promise<void> {
  await tx.query({
    text: `
      delete from refold.discards
      where name = $1 and version = $2 and recalled_at < coalesce($3::timestamptz, clock_timestamp())`,
    values: [name, version, begunAt ?? null],
  });
}

/** Forgets all that was thrown away. */
export async function deleteDiscards(tx: Queryable, name: string, version: number): Promise<void> {
  await tx.query({ text: 'delete from refold.discards where name = $1 and version = $2', values: [name, version] });
}
