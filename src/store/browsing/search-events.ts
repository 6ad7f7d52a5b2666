import type { EventMetadata } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import { earlierPosition, type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import type { Queryable } from '../statements/statement.ts';
import { isFull } from '../statements/within-bytes.ts';
import { defaultSizes, type EventSearch, type FoundRow, found, type SearchSizes, windowsOf } from './search-windows.ts';

/** An event as the log keeps it: its payload is not upcast, and may be of a version or type that no program declares any more. */
export interface StoredEvent {
  readonly position: GlobalPosition;
  readonly recordedAt: string;
  /** The declared name, or the stored one if nothing declares it. */
  readonly family: string;
  readonly streamId: string;
  readonly streamPosition: number;
  readonly type: string;
  readonly payloadVersion: number;
  readonly id: string;
  readonly metadata: EventMetadata;
  /** Only if the search asks for payloads. */
  readonly payload?: unknown;
}

// Recorded times are those of the server's clock. After a correction of the clock or a fail-over they may go back by less than this.
const clockTolerance = '1 minute';

/**
 * Searches the log. The result does not depend on how much of the log one statement visits.
 *
 * - A stream is read by its index.
 * - A correlation id is looked up in its index.
 * - Everything else walks the log by its key, from the position that the time leads to.
 */
export async function* searchEvents(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  search: EventSearch,
  sizes: SearchSizes = defaultSizes,
): AsyncGenerator<StoredEvent> {
  const bounds = await positionsOf(db, search);
  let left = search.limit;
  for await (const { rows } of windowsOf(db, { ...search, ...bounds }, sizes)) {
    for (const row of rows) {
      yield storedEvent(families, row, search.payloads === true);
      if (--left === 0) return;
    }
  }
}

/** A part of the result of a search. */
export interface EventSearchPage {
  readonly events: readonly StoredEvent[];
  /** Where the next page continues: its `after` with the oldest first, else its `upTo`. Null if nothing is left. */
  readonly next: GlobalPosition | null;
}

/**
 * Like {@link searchEvents}, but ends early, even if it has found less than the limit: after `windows` statements over the log, so a page takes a
 * bounded time, however rare the events are; and when the events have the size of a page.
 */
export async function searchEventPage(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  search: EventSearch,
  windows: number,
  sizes: SearchSizes = defaultSizes,
): Promise<EventSearchPage> {
  const bounds = await positionsOf(db, search);
  const events: StoredEvent[] = [];
  const before = (position: GlobalPosition) => globalPosition(position - 1n);
  let [count, bytes] = [0, 0];
  for await (const { rows, reached } of windowsOf(db, { ...search, ...bounds }, sizes)) {
    const bytesBefore = bytes;
    for (const row of rows) {
      events.push(storedEvent(families, row, search.payloads === true));
      bytes = bytesBefore + Number(row.bytes ?? 0);
      if (events.length < search.limit && !isFull(bytes, sizes.bytes)) continue;
      const last = globalPosition(row.position);
      return { events, next: search.order === 'oldestFirst' ? last : before(last) };
    }
    if (++count >= windows && reached !== undefined) return { events, next: reached };
  }
  return { events, next: null };
}

/** Narrows the positions by the times. */
async function positionsOf(db: Queryable, { after, upTo, since, until }: EventSearch) {
  if (since === undefined && until === undefined) return { after, upTo };
  const [row] = await db.query<{ start: bigint | null; end: bigint | null }>({
    text: `
      select
        refold.position_before($1::timestamptz - $3::interval) as start,
        refold.position_before($2::timestamptz + $3::interval) as end`,
    values: [since ?? null, until ?? null, clockTolerance],
  });
  return {
    after: since === undefined ? after : laterPosition(after, globalPosition(row?.start ?? 0n)),
    upTo: until === undefined ? upTo : earlierPosition(upTo, globalPosition(row?.end ?? 0n)),
  };
}

/** The events at these positions, as the log keeps them. */
export async function readStoredEvents(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  positions: readonly GlobalPosition[],
): Promise<StoredEvent[]> {
  const all = { order: 'oldestFirst', limit: positions.length, payloads: true } as const;
  const sizes = { bytes: Number.MAX_SAFE_INTEGER };
  const rows = await found(db, sizes, all, 'position = any ($7)', 'position', [positions]);
  return rows.map((row) => storedEvent(families, row, true));
}

function storedEvent(families: ReadonlyMap<string, EventFamily>, row: FoundRow, payloads: boolean): StoredEvent {
  const family = familyStoredAs(families, row.family);
  return {
    position: globalPosition(row.position),
    recordedAt: row.recorded_at,
    family: family?.name ?? row.family,
    streamId: row.stream_id,
    streamPosition: Number(row.stream_position),
    type: family?.declaredTypes[row.type] ?? row.type,
    payloadVersion: row.payload_version,
    id: row.id,
    metadata: row.metadata,
    ...(payloads ? { payload: row.payload } : {}),
  };
}
