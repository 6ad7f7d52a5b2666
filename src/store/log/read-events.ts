import pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { copyRows } from '../postgres/copy-rows.ts';
import type { Database } from '../postgres/database.ts';
import type { Queryable } from '../postgres/statement.ts';
import { type LogHead, readAnchor, readLogHead } from './horizon.ts';
import { createPageCollector, type PageBytes } from './page-bytes.ts';
import { copiedColumns, lastCopiedPosition } from './page-decoder.ts';
import { type EventRow, eventColumns, recordedEvent } from './recorded-event.ts';

/** Events of one family by their types. */
export interface EventFilter {
  readonly family: string;
  readonly types: readonly string[];
}

export interface ReadAllOptions {
  /** Where the last page ended; read from the next position on. */
  readonly after: GlobalPosition;
  /** A horizon, from an earlier statement. */
  readonly upTo: GlobalPosition;
  /** Of `upTo`: where the log has another one by now, the page is refused. @default none */
  readonly anchor?: string | null;
  /** Another one: what was read ahead before may be gone. @default 0 */
  readonly era?: number;
  /** @default all events of the known families */
  readonly filter?: readonly EventFilter[];
  /** Events of a page at most. */
  readonly limit: number;
}

export interface EventPage {
  readonly events: readonly RecordedEvent[];
  /** Where the next page begins after: everything that passes the filter up to here was read. */
  readonly upTo: GlobalPosition;
}

export interface ReadTailOptions extends Omit<ReadAllOptions, 'upTo' | 'anchor' | 'era'> {
  /** A position that is known from before, whose anchor is wanted. @default none */
  readonly known?: GlobalPosition | null;
}

/** How far the log is complete, and a page of what is new. The horizon may be before what was read after: one that is looked up later can be lower. */
export interface LogTail extends EventPage, LogHead {}

/** A page as it came, not yet made into events. */
export interface CopiedPage {
  readonly rows: PageBytes;
  readonly upTo: GlobalPosition;
  /** Whether there may be more before the `upTo` that was asked for. */
  readonly full: boolean;
}

/** Reads a page of the whole log, in its order; a page decoder makes events of it. */
export async function copyPage(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  { after, upTo, anchor = null, filter, limit }: ReadAllOptions,
): Promise<CopiedPage> {
  const types = wantedTypes(families, filter);
  const collector = createPageCollector();
  if (after >= upTo) return { rows: collector.collected(), upTo: after, full: false };
  // Who wants no events wants to know how far the log can be read: nothing is to be looked for.
  if (types.length === 0) {
    if (anchor !== null && (await readAnchor(db, upTo)).anchor !== anchor) throw historyChangedBefore(upTo);
    return { rows: collector.collected(), upTo, full: false };
  }
  const wanted = pg.escapeLiteral(`{${types.join(',')}}`); // names have letters, digits, _ and . only
  const query = `select ${copiedColumns} from refold.read_events(${after}, ${upTo}, ${wanted}, ${limit}, ${anchor === null ? 'null' : pg.escapeLiteral(anchor)})`;
  await copyRows(db, query, collector.add);
  const rows = collector.collected();
  const last = lastCopiedPosition(rows);
  const full = last !== undefined && rows.ends.length === limit;
  return { rows, upTo: full ? last : upTo, full };
}

/**
 * Looks up the horizon and reads a page up to it, in one round trip: for the head of the log, where a page is small, and COPY gains nothing.
 * The events are the same as those of {@link copyPage}. Where the database has its transactions keep one snapshot, none is read, and
 * the page ends where it began.
 */
export async function readTail(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  { after, filter, limit, known = null }: ReadTailOptions,
): Promise<LogTail> {
  const types = wantedTypes(families, filter);
  if (types.length === 0) {
    const head = await readLogHead(db, known);
    return { ...head, events: [], upTo: laterPosition(after, head.horizon) };
  }
  const rows = await db.query<TailRow>({
    name: 'refold_read_tail',
    text: `
      select horizon, anchor, known_anchor as "knownAnchor", server_start as "serverStart", up_to as "upTo", ${eventColumns}
      from refold.read_tail($1, $2, $3, $4)`,
    values: [after, types, limit, known],
  });
  const [first] = rows;
  if (!first) throw new Error('refold.read_tail gives a row, event or not');
  const { upTo, horizon, anchor, knownAnchor, serverStart } = first;
  const events = rows.filter(isEvent).map((row) => recordedEvent(knownFamily(families, row.family), row));
  const last = events.at(-1);
  return {
    ...{ horizon, anchor, knownAnchor, serverStart },
    events,
    upTo: last && events.length === limit ? last.position : upTo,
  };
}

/** What is known of the log up to a position holds no more. */
function historyChangedBefore(position: GlobalPosition): RefoldError<'HISTORY_CHANGED'> {
  return new RefoldError('HISTORY_CHANGED', `The log does not hold what was known up to position ${position}.`);
}

interface NoEvent extends LogHead {
  readonly upTo: GlobalPosition;
  readonly position: null;
}

type TailRow = NoEvent | (Omit<NoEvent, 'position'> & EventRow);

function isEvent(row: TailRow): row is TailRow & EventRow {
  return row.position !== null;
}

/** The events at these positions, in their order. */
export async function readPositions(
  target: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  positions: readonly GlobalPosition[],
): Promise<RecordedEvent[]> {
  const rows = await target.query<EventRow>({
    text: `
      select ${eventColumns}
      from refold.events
      where position = any ($1)
      order by position`,
    values: [positions],
  });
  return rows.map((row) => recordedEvent(knownFamily(families, row.family), row));
}

/** What a snapshot shows of the log after a position, whether or not it is complete up to there: for what commits with the events. */
export async function readVisible(
  snapshot: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  { after, upTo }: { readonly after: GlobalPosition; readonly upTo: GlobalPosition },
  filter: readonly EventFilter[],
): Promise<RecordedEvent[]> {
  const rows = await snapshot.query<EventRow>({
    text: `
      select ${eventColumns}
      from refold.events
      where position > $1 and position <= $2 and family || '.' || type = any ($3)
      order by position`,
    values: [after, upTo, wantedTypes(families, filter)],
  });
  return rows.map((row) => recordedEvent(knownFamily(families, row.family), row));
}

/** The last position that a snapshot shows. */
export async function lastVisible(snapshot: Queryable): Promise<GlobalPosition> {
  const [row] = await snapshot.query<{ last: GlobalPosition }>({
    text: 'select coalesce(max(position), 0) as last from refold.events',
  });
  if (!row) throw new Error('an aggregate without groups gives one row');
  return row.last;
}

/** The family of this name, or an error that says which ones there are. */
export function knownFamily(families: ReadonlyMap<string, EventFamily>, name: string): EventFamily {
  const family = families.get(name);
  if (family) return family;
  throw new RefoldError(
    'INVALID_DECLARATION',
    `The event log does not know an event family '${name}'.${closest(name, [...families.keys()])} Name it among its families.`,
    { family: name },
  );
}

/** `family.type` of each wanted event type. */
function wantedTypes(families: ReadonlyMap<string, EventFamily>, filter: readonly EventFilter[] | undefined): string[] {
  return (filter ?? [...families.values()].map(({ name, types }) => ({ family: name, types }))).flatMap(
    ({ family, types }) => {
      const known = knownFamily(families, family);
      return types.map((type) => {
        if (known.types.includes(type)) return `${family}.${type}`;
        throw new RefoldError(
          'UNKNOWN_EVENT_TYPE',
          `${family} does not define an event type '${type}'.${closest(type, known.types)}`,
          { family, type },
        );
      });
    },
  );
}
