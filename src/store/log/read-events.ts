import pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { copyRows } from '../postgres/copy-rows.ts';
import type { Database } from '../postgres/database.ts';
import type { Queryable } from '../statements/statement.ts';
import { maxPageBytes } from '../statements/within-bytes.ts';
import { type LogHead, readAnchor, readLogHead } from './horizon.ts';
import { createPageCollector, type PageBytes } from './page-bytes.ts';
import { copiedColumns, lastCopiedPosition } from './page-decoder.ts';
import { type EventRow, isCut, recordedEvents, type SizedRow, sizedColumns, withinPage } from './recorded-event.ts';

/** Events of one family, by type. */
export interface FamilyFilter {
  readonly family: string;
  readonly types: readonly string[];
}

export interface ReadAllOptions {
  /** The end of the previous page. Reading starts at the next position. */
  readonly after: GlobalPosition;
  /** A horizon that an earlier statement returned. */
  readonly upTo: GlobalPosition;
  /** The anchor of `upTo`. If the log now has another anchor there, the page is refused. @default no check */
  readonly anchor?: string | null;
  /** A new era discards pages that were read ahead in an earlier one. @default 0 */
  readonly era?: number;
  /** @default all events of the known families */
  readonly filter?: readonly FamilyFilter[];
  /** The maximum of events in a page. */
  readonly limit: number;
}

export interface LogPage {
  readonly events: readonly RecordedEvent[];
  /** The page covers all matching events up to here. The next page starts after it. It has fewer events than the limit if they are large. */
  readonly upTo: GlobalPosition;
  /** The size of the events in the database, about. */
  readonly bytes: number;
}

export interface ReadTailOptions extends Omit<ReadAllOptions, 'upTo' | 'anchor' | 'era'> {
  /** A known position whose anchor to read. @default none */
  readonly known?: GlobalPosition | null;
}

/**
 * The horizon and a page of new events. The horizon can be lower than the `after` of the request: a later horizon may be lower than an
 * earlier one.
 */
export interface LogTail extends LogPage, LogHead {}

/** A page of copied rows that are not decoded yet. */
export interface CopiedPage {
  readonly rows: PageBytes;
  readonly upTo: GlobalPosition;
  /** Whether there may be more events up to the requested `upTo`. */
  readonly full: boolean;
}

/** Reads a page of the whole log, in order. A page decoder decodes its events. */
export async function copyPage(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  { after, upTo, anchor = null, filter, limit }: ReadAllOptions,
): Promise<CopiedPage> {
  const types = wantedTypes(families, filter);
  const collector = createPageCollector();
  if (after >= upTo) return { rows: collector.collected(), upTo: after, full: false };
  // Without event types the caller only needs to know how far the log can be read. No search is needed.
  if (types.length === 0) {
    if (anchor !== null && (await readAnchor(db, upTo)).anchor !== anchor) throw historyChangedBefore(upTo);
    return { rows: collector.collected(), upTo, full: false };
  }
  const wanted = pg.escapeLiteral(`{${types.join(',')}}`); // names contain only letters, digits, _ and .
  const query = `select ${copiedColumns} from refold.read_events(${after}, ${upTo}, ${wanted}, ${limit}, ${anchor === null ? 'null' : pg.escapeLiteral(anchor)})`;
  const isCut = await copyRows(db, query, collector.add);
  const rows = collector.collected();
  const last = lastCopiedPosition(rows);
  const full = last !== undefined && (isCut || rows.ends.length === limit);
  return { rows, upTo: full ? last : upTo, full };
}

/**
 * Reads the horizon and a page up to it in one round trip. For the head of the log, where pages are small and COPY has no advantage. The
 * events equal those of {@link copyPage}. If the database's transactions keep one snapshot (repeatable read), no events are read and the
 * page ends where it began.
 */
export async function readTail(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  { after, filter, limit, known = null }: ReadTailOptions,
  onSlowEvent?: OnSlowEvent,
): Promise<LogTail> {
  const types = wantedTypes(families, filter);
  if (types.length === 0) {
    const head = await readLogHead(db, known);
    return { ...head, events: [], bytes: 0, upTo: laterPosition(after, head.horizon) };
  }
  const rows = await db.query<TailRow>({
    name: 'refold_read_tail',
    text: `
      select horizon, anchor, known_anchor as "knownAnchor", server_start as "serverStart", up_to as "upTo", ${sizedColumns}
      from ${withinPage('refold.read_tail($1, $2, $3, $4)')}`,
    values: [after, types, limit, known],
  });
  const [first] = rows;
  if (!first) throw new Error('refold.read_tail must return at least one row');
  const { upTo, horizon, anchor, knownAnchor, serverStart } = first;
  const events = await recordedEvents(rows.filter(isEvent), (row) => familyOf(families, row), onSlowEvent);
  const last = events.at(-1);
  const bytes = Number(rows.at(-1)?.bytes ?? 0);
  return {
    ...{ horizon, anchor, knownAnchor, serverStart },
    events,
    bytes,
    upTo: last && (events.length === limit || bytes >= maxPageBytes) ? last.position : upTo,
  };
}

/** The error if the log has changed up to a known position, for example after a failover that lost events. */
function historyChangedBefore(position: GlobalPosition): RefoldError<'HISTORY_CHANGED'> {
  return new RefoldError(
    'HISTORY_CHANGED',
    `The log has changed at or before position ${position}: it no longer holds the events that were read before.`,
  );
}

interface NoEvent extends LogHead {
  readonly upTo: GlobalPosition;
  readonly bytes: bigint | null;
  readonly position: null;
}

type TailRow = NoEvent | (Omit<NoEvent, 'position'> & EventRow);

function isEvent(row: TailRow): row is TailRow & EventRow {
  return row.position !== null;
}

/** The events at these positions, in log order. */
export async function readPositions(
  target: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  positions: readonly GlobalPosition[],
): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of readEach(target, families, positions)) events.push(event);
  return events;
}

/** As {@link readPositions}, with only a page of them in memory. */
export async function* readEach(
  target: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  positions: readonly GlobalPosition[],
): AsyncGenerator<RecordedEvent> {
  for await (const page of eventPages(target, families, 'position = any ($3)', [positions])) yield* page;
}

/**
 * Pages of the events after a position that a snapshot shows, whether or not the log is complete up to there. For work that commits together with
 * events.
 */
export function readVisible(
  snapshot: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  { after, upTo }: { readonly after: GlobalPosition; readonly upTo: GlobalPosition },
  filter: readonly FamilyFilter[],
): AsyncGenerator<readonly RecordedEvent[]> {
  const condition = `position > $3 and position <= $4 and family || '.' || type = any ($5)`;
  return eventPages(snapshot, families, condition, [after, upTo, wantedTypes(families, filter)]);
}

/** Pages of the events that meet a condition, in log order. `values` are those from $3 on. */
async function* eventPages(
  target: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  condition: string,
  values: readonly unknown[],
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let after: bigint | undefined = 0n; after !== undefined; ) {
    const rows: SizedRow[] = await target.query<SizedRow>({
      text: `
        select ${sizedColumns}
        from ${withinPage(`(
          select *
          from refold.events
          where position > $1 and ${condition}
          order by position
          limit $2
        )`)}`,
      values: [after, eventsAtOnce, ...values],
    });
    if (rows.length > 0) yield recordedEvents(rows, (row) => familyOf(families, row));
    const last = rows.at(-1);
    after = last && (rows.length === eventsAtOnce || isCut(last)) ? last.position : undefined;
  }
}

const eventsAtOnce = 5000;

/** The highest position that a snapshot shows. */
export async function lastVisible(snapshot: Queryable): Promise<GlobalPosition> {
  const [row] = await snapshot.query<{ last: GlobalPosition }>({
    text: 'select coalesce(max(position), 0) as last from refold.events',
  });
  if (!row) throw new Error('an aggregate without groups must return one row');
  return row.last;
}

/** Returns the family with this name. @throws RefoldError `INVALID_DECLARATION` that lists the known families */
export function knownFamily(families: ReadonlyMap<string, EventFamily>, name: string): EventFamily {
  const family = families.get(name);
  if (family) return family;
  throw new RefoldError(
    'INVALID_DECLARATION',
    `The event log does not know an event family '${name}'.${closest(name, [...families.keys()])} Add the family to the configuration.`,
    { family: name },
  );
}

/** The family of a row of the log. @throws RefoldError `INVALID_DECLARATION` */
function familyOf(families: ReadonlyMap<string, EventFamily>, { family }: EventRow): EventFamily {
  return familyStoredAs(families, family) ?? knownFamily(families, family);
}

/** `family.type` of each requested event type, under all names that the log may hold. */
function wantedTypes(
  families: ReadonlyMap<string, EventFamily>,
  filter: readonly FamilyFilter[] | undefined,
): string[] {
  return (filter ?? [...families.values()].map(({ name, types }) => ({ family: name, types }))).flatMap(
    ({ family, types }) => {
      const known = knownFamily(families, family);
      return types.flatMap((type) => {
        const names = Object.hasOwn(known.typeNames, type) ? known.typeNames[type] : undefined;
        if (names) return names.map((name) => `${known.storedName}.${name}`);
        throw new RefoldError(
          'UNKNOWN_EVENT_TYPE',
          `${family} does not define an event type '${type}'.${closest(type, known.types)}`,
          { family, type },
        );
      });
    },
  );
}
