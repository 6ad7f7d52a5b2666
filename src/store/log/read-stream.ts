import { InvalidInput } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { EventPace } from '../../events/event-pace.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Queryable, TableRow } from '../statements/statement.ts';
import { type EventRow, isCut, recordedEvent, type SizedRow, sizedColumns, withinPage } from './recorded-event.ts';

export interface ReadStreamOptions {
  /** @default 'forward' */
  readonly direction?: 'forward' | 'backward';
  /** Lowest stream position to read, inclusive. @default 1 */
  readonly from?: number;
  /** Highest stream position to read, inclusive. @default the last */
  readonly to?: number;
  /** The maximum of events to read. @default all */
  readonly limit?: number;
  /** Excludes events after this global position. */
  readonly upTo?: GlobalPosition;
  /** Excludes events that were recorded after this time: ISO 8601. */
  readonly recordedUntil?: string;
}

// Most streams are shorter and need one statement. Longer ones are never held in memory as a whole.
const pageSize = 1000;

/** The events of a stream, read page by page. */
export async function* readStream(
  target: Queryable,
  family: EventFamily,
  streamId: string,
  options: ReadStreamOptions = {},
): AsyncGenerator<RecordedEvent> {
  const { direction = 'forward', limit = Number.MAX_SAFE_INTEGER } = options;
  let { from = 1, to = Number.MAX_SAFE_INTEGER } = options;
  requireWholeNumbers({ from, to, limit });
  const pace = new EventPace();
  let left = limit;
  while (left > 0) {
    const size = Math.min(left, pageSize);
    const rows = await streamPage(target, {
      family: family.storedName,
      streamId,
      direction,
      from,
      to,
      upTo: options.upTo ?? null,
      recordedUntil: options.recordedUntil ?? null,
      size,
    });
    pace.start();
    for (const row of rows) {
      yield recordedEvent(family, row);
      // Also if neither upcasters nor the caller's code wait for anything.
      if (pace.isDue) await pace.turn();
    }
    const last = rows.at(-1);
    if (!last || (rows.length < size && !isCut(last))) return;
    left -= rows.length;
    if (direction === 'forward') from = Number(last.stream_position) + 1;
    else to = Number(last.stream_position) - 1;
  }
}

/** The number of events in the stream; 0 if it does not exist. */
export async function streamVersion(target: Queryable, family: string, streamId: string): Promise<number> {
  const [row] = await target.query<Pick<TableRow<'refold.streams'>, 'version'>>({
    name: 'refold_stream_version',
    text: 'select version from refold.streams where family = $1 and stream_id = $2',
    values: [family, streamId],
  });
  return Number(row?.version ?? 0);
}

/** Version and position of the stream's last event up to a version; both are 0 if there is none. Reads no payload. */
export async function lastOfStream(
  target: Queryable,
  family: string,
  streamId: string,
  to: number,
): Promise<{ readonly version: number; readonly position: GlobalPosition }> {
  const [row] = await target.query<Pick<EventRow, 'position' | 'stream_position'>>({
    name: 'refold_stream_last',
    text: `
      select position, stream_position
      from refold.events
      where family = $1
        and stream_id = $2
        and stream_position <= $3
      order by stream_position desc
      limit 1`,
    values: [family, streamId, to],
  });
  return row
    ? { version: Number(row.stream_position), position: globalPosition(row.position) }
    : { version: 0, position: beginning };
}

interface LongStream {
  /** Its name in the log. */
  readonly family: string;
  readonly streamId: string;
  readonly version: number;
}

/** The longest stream of each of these families, if it has at least so many events. Reads all streams: for operators. */
export async function longestStreams(
  target: Queryable,
  families: readonly string[],
  atLeast: number,
): Promise<LongStream[]> {
  if (families.length === 0) return [];
  const rows = await target.query<TableRow<'refold.streams'>>({
    text: `
      select distinct on (family) family, stream_id, version
      from refold.streams
      where family = any($1)
        and version >= $2
      order by family, version desc`,
    values: [families, atLeast],
  });
  return rows.map(({ family, stream_id, version }) => ({ family, streamId: stream_id, version: Number(version) }));
}

interface Page {
  readonly family: string;
  readonly streamId: string;
  readonly direction: 'forward' | 'backward';
  readonly from: number;
  readonly to: number;
  readonly upTo: GlobalPosition | null;
  readonly recordedUntil: string | null;
  readonly size: number;
}

function streamPage(target: Queryable, page: Page): Promise<SizedRow[]> {
  return target.query<SizedRow>({
    name: `refold_stream_${page.direction}`,
    text: `
      select ${sizedColumns}
      from ${withinPage(`(
        select *
        from refold.events
        where family = $1
          and stream_id = $2
          and stream_position between $3 and $4
          and ($5::bigint is null or position <= $5)
          and ($6::timestamptz is null or recorded_at <= $6)
        order by stream_position ${page.direction === 'forward' ? 'asc' : 'desc'}
        limit $7
      )`)}`,
    values: [page.family, page.streamId, page.from, page.to, page.upTo, page.recordedUntil, page.size],
  });
}

function requireWholeNumbers(options: Record<string, number>): void {
  const wrong = Object.entries(options).filter(([, value]) => !Number.isSafeInteger(value) || value < 0);
  if (wrong.length === 0) return;
  const issues = wrong.map(([name, value]) => ({
    path: [name],
    message: `a whole number from 0 on is needed, found ${value}.`,
  }));
  throw new InvalidInput('BAD_USER_INPUT', 'The options of readStream', issues);
}
