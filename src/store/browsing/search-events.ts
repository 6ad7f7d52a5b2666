import type { EventMetadata } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import { earlierPosition, type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import type { Queryable, TableRow } from '../statements/statement.ts';

/** Which events of the log an operator wants to see. All conditions must hold. */
export interface EventSearch {
  /** One stream, by the name under which the log keeps its family. */
  readonly stream?: { readonly family: string; readonly streamId: string } | undefined;
  /** `family.type` under all names that the log may hold. @default all types, also undeclared ones */
  readonly types?: readonly string[] | undefined;
  readonly correlationId?: string | undefined;
  /** Recorded at this time or later: ISO 8601. */
  readonly since?: string | undefined;
  /** Recorded before this time: ISO 8601. */
  readonly until?: string | undefined;
  /** Only events after this position. */
  readonly after: GlobalPosition;
  /** Only events up to this position: at most a horizon that an earlier statement returned. */
  readonly upTo: GlobalPosition;
  readonly order: 'oldest-first' | 'newest-first';
  /** The maximum of events. */
  readonly limit: number;
  /** Whether to read payloads. @default false */
  readonly payloads?: boolean | undefined;
}

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

/** How much one statement visits at most. A search that finds little takes many statements, and none of them takes long. */
export interface SearchSizes {
  /** Positions of the log, or of a stream. @default 10,000 */
  readonly window: bigint;
  /** Matches of a correlation id. @default 1000 */
  readonly page: number;
}

const defaultSizes: SearchSizes = { window: 10_000n, page: 1000 };

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
    for (const row of rows.slice(0, left)) yield storedEvent(families, row, search.payloads === true);
    left -= rows.length;
    if (left <= 0) return;
  }
}

/** A part of the result of a search. */
export interface EventSearchPage {
  readonly events: readonly StoredEvent[];
  /** Where the next page continues: its `after` with the oldest first, else its `upTo`. Null if nothing is left. */
  readonly next: GlobalPosition | null;
}

/**
 * Like {@link searchEvents}, but ends early: after `windows` statements over the log, even if it has found less than the limit. So a page takes a
 * bounded time, however rare the events are.
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
  let count = 0;
  for await (const { rows, reached } of windowsOf(db, { ...search, ...bounds }, sizes)) {
    for (const row of rows) {
      events.push(storedEvent(families, row, search.payloads === true));
      if (events.length < search.limit) continue;
      const last = globalPosition(row.position);
      return { events, next: search.order === 'oldest-first' ? last : before(last) };
    }
    if (++count >= windows && reached !== undefined) return { events, next: reached };
  }
  return { events, next: null };
}

/** What one statement found. */
interface FoundWindow {
  readonly rows: FoundRow[];
  /** The position up to which the log is searched; undefined if that is not known. */
  readonly reached?: GlobalPosition;
}

function windowsOf(db: Queryable, search: EventSearch, { window, page }: SearchSizes): AsyncGenerator<FoundWindow> {
  if (search.stream) return windowsOfStream(db, search, search.stream, window);
  if (search.correlationId !== undefined) return windowsOfCorrelation(db, search, search.correlationId, page);
  return windowsOfLog(db, search, window);
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

async function* windowsOfLog(db: Queryable, search: EventSearch, windowSize: bigint): AsyncGenerator<FoundWindow> {
  let { after, upTo } = search;
  while (after < upTo) {
    const oldestFirst = search.order === 'oldest-first';
    const [from, to] = oldestFirst
      ? [after, earlierPosition(upTo, globalPosition(after + windowSize))]
      : [laterPosition(after, globalPosition(upTo > windowSize ? upTo - windowSize : 0n)), upTo];
    const rows = await found(db, search, 'position > $7 and position <= $8', 'position', [from, to]);
    if (oldestFirst) after = to;
    else upTo = from;
    yield { rows, reached: oldestFirst ? after : upTo };
    if (rows.length > 0) continue;
    // Steps over a gap of any size.
    const next = await nextEvent(db, after, upTo, oldestFirst);
    if (next === undefined) return;
    if (oldestFirst) after = globalPosition(next - 1n);
    else upTo = next;
  }
}

async function nextEvent(
  db: Queryable,
  after: GlobalPosition,
  upTo: GlobalPosition,
  oldestFirst: boolean,
): Promise<GlobalPosition | undefined> {
  const [row] = await db.query<{ position: GlobalPosition }>({
    text: `
      select position
      from refold.events
      where position > $1 and position <= $2
      order by position ${oldestFirst ? 'asc' : 'desc'}
      limit 1`,
    values: [after, upTo],
  });
  return row?.position;
}

async function* windowsOfStream(
  db: Queryable,
  search: EventSearch,
  { family, streamId }: NonNullable<EventSearch['stream']>,
  windowSize: bigint,
): AsyncGenerator<FoundWindow> {
  const [stream] = await db.query<{ version: bigint }>({
    text: 'select version from refold.streams where family = $1 and stream_id = $2',
    values: [family, streamId],
  });
  const version = stream?.version ?? 0n;
  const condition = `
    family = $9 and stream_id = $10
    and stream_position > $11 and stream_position <= $12
    and position > $7 and position <= $8`;
  for (let walked = 0n; walked < version; walked += windowSize) {
    const far = walked + windowSize < version ? walked + windowSize : version;
    const [from, to] = search.order === 'oldest-first' ? [walked, far] : [version - far, version - walked];
    const bounds = [search.after, search.upTo, family, streamId, from, to];
    yield { rows: await found(db, search, condition, 'stream_position', bounds) };
  }
}

async function* windowsOfCorrelation(
  db: Queryable,
  search: EventSearch,
  correlationId: string,
  pageSize: number,
): AsyncGenerator<FoundWindow> {
  let { after, upTo } = search;
  const newest = search.order === 'newest-first';
  while (after < upTo) {
    const positions = await db.query<{ position: GlobalPosition }>({
      text: 'select position from refold.correlated($1, $2, $3, $4, $5) as position',
      values: [correlationId, after, upTo, newest, pageSize],
    });
    const last = positions.at(-1)?.position;
    if (last === undefined) return;
    yield {
      rows: await found(db, search, 'position = any ($7)', 'position', [positions.map(({ position }) => position)]),
    };
    if (positions.length < pageSize) return;
    if (newest) upTo = globalPosition(last - 1n);
    else after = last;
  }
}

/** The events at these positions, as the log keeps them. */
export async function readStoredEvents(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  positions: readonly GlobalPosition[],
): Promise<StoredEvent[]> {
  const all = { order: 'oldest-first', limit: positions.length, payloads: true } as const;
  const rows = await found(db, all, 'position = any ($7)', 'position', [positions]);
  return rows.map((row) => storedEvent(families, row, true));
}

type FoundRow = Omit<TableRow<'refold.events'>, 'payload'> & { readonly payload: unknown };

/** The matching events of one window. `bounds` are the values from $7 on. */
function found(
  db: Queryable,
  search: Omit<EventSearch, 'after' | 'upTo'>,
  condition: string,
  order: 'position' | 'stream_position',
  bounds: readonly unknown[],
): Promise<FoundRow[]> {
  return db.query<FoundRow>({
    text: `
      select
        position, stream_position, recorded_at, id, payload_version, family, stream_id, type, metadata,
        case when $1 then payload end as payload
      from refold.events
      where ${condition}
        and ($2::text[] is null or family || '.' || type = any ($2))
        and ($3::text is null or metadata ->> 'correlationId' = $3)
        and ($4::timestamptz is null or recorded_at >= $4)
        and ($5::timestamptz is null or recorded_at < $5)
      order by ${order} ${search.order === 'oldest-first' ? 'asc' : 'desc'}
      limit $6`,
    values: [
      search.payloads === true,
      search.types ?? null,
      search.correlationId ?? null,
      search.since ?? null,
      search.until ?? null,
      search.limit,
      ...bounds,
    ],
  });
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
