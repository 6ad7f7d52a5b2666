import { earlierPosition, type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import { type SizedRow, sizedColumns, withinPage } from '../log/recorded-event.ts';
import type { Queryable } from '../statements/statement.ts';
import { isFull, maxPageBytes } from '../statements/within-bytes.ts';

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
  readonly order: 'oldestFirst' | 'newestFirst';
  /** The maximum of events. */
  readonly limit: number;
  /** Whether to read payloads. @default false */
  readonly payloads?: boolean | undefined;
}

/** How much one statement visits at most. A search that finds little takes many statements, and none of them takes long. */
export interface SearchSizes {
  /** Positions of the log, or of a stream. @default 10,000 */
  readonly window: bigint;
  /** Matches of a correlation id. @default 1000 */
  readonly page: number;
  /** The size at which the events of a page end, if their payloads are read. @default 8 MiB */
  readonly bytes: number;
}

export const defaultSizes: SearchSizes = { window: 10_000n, page: 1000, bytes: maxPageBytes };

/** What one statement found. */
export interface FoundWindow {
  /** In their order; fewer than match if they are large. */
  readonly rows: FoundRow[];
  /** The position up to which the log is searched; undefined if that is not known. */
  readonly reached?: GlobalPosition;
}

/** Visits the whole of a search, a window with each statement. */
export function windowsOf(db: Queryable, search: EventSearch, sizes: SearchSizes): AsyncGenerator<FoundWindow> {
  if (search.stream) return windowsOfStream(db, search, search.stream, sizes);
  if (search.correlationId !== undefined) return windowsOfCorrelation(db, search, search.correlationId, sizes);
  return windowsOfLog(db, search, sizes);
}

/** The row after which the next statement continues, if its size ended this one. */
function cutAt(rows: readonly FoundRow[], { bytes }: SearchSizes): FoundRow | undefined {
  const last = rows.at(-1);
  return last && isFull(last.bytes, bytes) ? last : undefined;
}

async function* windowsOfLog(db: Queryable, search: EventSearch, sizes: SearchSizes): AsyncGenerator<FoundWindow> {
  const windowSize = sizes.window;
  let { after, upTo } = search;
  while (after < upTo) {
    const oldestFirst = search.order === 'oldestFirst';
    const [from, to] = oldestFirst
      ? [after, earlierPosition(upTo, globalPosition(after + windowSize))]
      : [laterPosition(after, globalPosition(upTo > windowSize ? upTo - windowSize : 0n)), upTo];
    const rows = await found(db, sizes, search, 'position > $7 and position <= $8', 'position', [from, to]);
    const cut = cutAt(rows, sizes);
    if (oldestFirst) after = cut?.position ?? to;
    else upTo = cut ? globalPosition(cut.position - 1n) : from;
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
  sizes: SearchSizes,
): AsyncGenerator<FoundWindow> {
  const windowSize = sizes.window;
  const [stream] = await db.query<{ version: bigint }>({
    text: 'select version from refold.streams where family = $1 and stream_id = $2',
    values: [family, streamId],
  });
  const version = stream?.version ?? 0n;
  const condition = `
    family = $9 and stream_id = $10
    and stream_position > $11 and stream_position <= $12
    and position > $7 and position <= $8`;
  const oldestFirst = search.order === 'oldestFirst';
  for (let walked = 0n; walked < version; ) {
    const far = walked + windowSize < version ? walked + windowSize : version;
    const [from, to] = oldestFirst ? [walked, far] : [version - far, version - walked];
    const rows = await found(db, sizes, search, condition, 'stream_position', [
      ...[search.after, search.upTo, family, streamId, from, to],
    ]);
    yield { rows };
    const cut = cutAt(rows, sizes)?.stream_position;
    if (cut === undefined) walked = far;
    else walked = oldestFirst ? cut : version - cut + 1n;
  }
}

async function* windowsOfCorrelation(
  db: Queryable,
  search: EventSearch,
  correlationId: string,
  sizes: SearchSizes,
): AsyncGenerator<FoundWindow> {
  let { after, upTo } = search;
  const newest = search.order === 'newestFirst';
  while (after < upTo) {
    const positions = await db.query<{ position: GlobalPosition }>({
      text: 'select position from refold.correlated($1, $2, $3, $4, $5) as position',
      values: [correlationId, after, upTo, newest, sizes.page],
    });
    const these = positions.map(({ position }) => position);
    const rows = await found(db, sizes, search, 'position = any ($7)', 'position', [these]);
    yield { rows };
    const cut = cutAt(rows, sizes)?.position;
    const last = cut ?? positions.at(-1)?.position;
    if (last === undefined || (cut === undefined && positions.length < sizes.page)) return;
    if (newest) upTo = globalPosition(last - 1n);
    else after = globalPosition(last);
  }
}

/** `payload` is null if payloads are not read; `bytes` is the size of the rows up to this one. */
export type FoundRow = Omit<SizedRow, 'payload'> & { readonly payload: unknown };

/** The matching events of one window. `bounds` are the values from $7 on. */
export function found(
  db: Queryable,
  { bytes }: Pick<SearchSizes, 'bytes'>,
  search: Omit<EventSearch, 'after' | 'upTo'>,
  condition: string,
  order: 'position' | 'stream_position',
  bounds: readonly unknown[],
): Promise<FoundRow[]> {
  const matching = `(
    select
      position, stream_position, recorded_at, id, payload_version, family, stream_id, type, metadata,
      case when $1 then payload end as payload
    from refold.events
    where ${condition}
      and ($2::text[] is null or family || '.' || type = any ($2))
      and ($3::text is null or metadata ->> 'correlationId' = $3)
      and ($4::timestamptz is null or recorded_at >= $4)
      and ($5::timestamptz is null or recorded_at < $5)
    order by ${order} ${search.order === 'oldestFirst' ? 'asc' : 'desc'}
    limit $6
  )`;
  return db.query<FoundRow>({
    text: `select ${sizedColumns} from ${withinPage(matching, bytes)}`,
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
