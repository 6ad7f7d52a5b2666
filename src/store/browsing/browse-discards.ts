import type { GlobalPosition } from '../../events/global-position.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { Queryable } from '../statements/statement.ts';

/** Discarded events of a version that are not recalled, after a place in log order. */
export interface BrowsedDiscard {
  readonly position: GlobalPosition;
  readonly eventType: string;
  readonly streamId: string;
  readonly key: RowKey | null;
  readonly actor: string;
  readonly reason: string;
  readonly at: string;
}

export async function readDiscardPage(
  db: Queryable,
  {
    name,
    version,
    after,
    limit,
  }: { name: string; version: number; after: readonly [bigint, string] | null; limit: number },
): Promise<BrowsedDiscard[]> {
  return db.query<BrowsedDiscard>({
    text: `
      select position, event_type as "eventType", stream_id as "streamId", nullif(key, 'null') as key, actor, reason, at
      from refold.discards
      where name = $1 and version = $2 and recalled_at is null
        and ($3::bigint is null or (position, key) > ($3, $4::jsonb))
      order by position, key
      limit $5`,
    values: [name, version, after?.[0] ?? null, after?.[1] ?? null, limit],
  });
}
