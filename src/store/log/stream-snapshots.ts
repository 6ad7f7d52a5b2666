import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../statements/statement.ts';
import { type EventRow, eventColumns, isCut, type SizedRow, sizedColumns, withinPage } from './recorded-event.ts';

/** A stored state of a stream. */
export interface StreamSnapshot {
  /** Its name in the log. */
  readonly family: string;
  readonly streamId: string;
  /** Fingerprint of the code that computed the state. */
  readonly fingerprint: string;
  readonly streamPosition: number;
  /** Position of the event at `streamPosition`. */
  readonly position: GlobalPosition;
  /** As JSON. */
  readonly state: string;
}

export interface StreamStart {
  readonly snapshot:
    | { readonly streamPosition: number; readonly position: bigint; readonly state: unknown }
    | undefined;
  readonly events: readonly EventRow[];
  /** Whether the page ended because of its number or size. */
  readonly full: boolean;
}

type StartRow = SizedRow & { readonly id: string | null; readonly state: unknown };

/** Reads in one statement the latest snapshot of this code up to a stream position, and one page of the events after it. */
export async function readStart(
  target: Queryable,
  stream: { readonly family: string; readonly streamId: string; readonly fingerprint: string; readonly to: number },
  pageSize: number,
): Promise<StreamStart> {
  const rows = await target.query<StartRow>({
    name: 'refold_stream_start',
    text: `
      with snapshot as materialized (
        select *
        from refold.stream_snapshots
        where family = $1
          and stream_id = $2
          and fingerprint = $3
          and stream_position <= $4
        order by stream_position desc
        limit 1
      ), later as (
        select ${sizedColumns}
        from ${withinPage(`(
          select *
          from refold.events
          where family = $1
            and stream_id = $2
            and stream_position > coalesce((select stream_position from snapshot), 0)
            and stream_position <= $4
          order by stream_position
          limit $5
        )`)}
      )
      select position, stream_position, null as recorded_at, null as id, null as payload_version, null as family,
        null as stream_id, null as type, null as payload, null as metadata, null as bytes, state
      from snapshot
      union all
      select ${eventColumns}, bytes, null
      from later
      order by stream_position`,
    values: [stream.family, stream.streamId, stream.fingerprint, stream.to, pageSize],
  });
  const [first] = rows;
  const last = rows.at(-1);
  const events = first?.id === null ? rows.slice(1) : rows;
  const full = events.length === pageSize || (last !== undefined && isCut(last));
  if (first?.id !== null) return { snapshot: undefined, events, full };
  const { stream_position, position, state } = first;
  return { snapshot: { streamPosition: Number(stream_position), position, state }, events, full };
}

/** The stream's position at a time or at a global position: that of its last event up to then, or 0. */
export async function streamPositionAt(
  target: Queryable,
  family: string,
  streamId: string,
  { position = null, time = null }: { readonly position?: GlobalPosition | null; readonly time?: string | null },
): Promise<number> {
  const [row] = await target.query<Pick<EventRow, 'stream_position'>>({
    text: `
      select stream_position
      from refold.events
      where family = $1
        and stream_id = $2
        and ($3::bigint is null or position <= $3)
        and ($4::timestamptz is null or recorded_at <= $4)
      order by stream_position desc
      limit 1`,
    values: [family, streamId, position, time],
  });
  return Number(row?.stream_position ?? 0);
}

// The second latest serves readers of a slightly older state.
const kept = 2;
// During a deployment, old and new code use the same streams. Neither must delete the snapshots of the other.
const keptOfOtherCode = '1 day';

/** Saves a state and deletes the ones that it replaces. */
export async function saveSnapshot(target: Queryable, snapshot: StreamSnapshot): Promise<void> {
  const { family, streamId, fingerprint, streamPosition, position, state } = snapshot;
  await target.query({
    name: 'refold_save_snapshot',
    text: `
      with saved as (
        insert into refold.stream_snapshots (family, stream_id, fingerprint, stream_position, position, state)
        values ($1, $2, $3, $4, $5, $6)
        on conflict do nothing
      )
      delete from refold.stream_snapshots
      where family = $1
        and stream_id = $2
        and (
          fingerprint <> $3 and taken_at < now() - interval '${keptOfOtherCode}'
          or fingerprint = $3 and stream_position < (
            select min(stream_position)
            from (
              select stream_position
              from refold.stream_snapshots
              where family = $1 and stream_id = $2 and fingerprint = $3
              order by stream_position desc
              limit ${kept - 1} -- the one saved above is not visible to this statement yet
            ) latest
          )
        )`,
    values: [family, streamId, fingerprint, streamPosition, position, state],
  });
}
