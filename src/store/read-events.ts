import pg from 'pg';
import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily } from '../events/event-family.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import { copyRows } from './copy-rows.ts';
import type { Database } from './database.ts';
import { copiedColumns, copiedPosition } from './page-decoder.ts';
import { type EventRow, eventColumns, recordedEvent } from './recorded-event.ts';
import type { Queryable } from './statement.ts';

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

/** A page as it came, not yet made into events. */
export interface CopiedPage {
  readonly lines: readonly Buffer[];
  readonly upTo: GlobalPosition;
  /** Whether there may be more before the `upTo` that was asked for. */
  readonly full: boolean;
}

/** Reads a page of the whole log, in its order; {@link decodePage} makes events of it. */
export async function copyPage(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  { after, upTo, filter, limit }: ReadAllOptions,
): Promise<CopiedPage> {
  const wanted = pg.escapeLiteral(`{${wantedTypes(families, filter).join(',')}}`); // names have letters, digits, _ and . only
  if (after >= upTo) return { lines: [], upTo: after, full: false };
  const lines: Buffer[] = [];
  const query = `select ${copiedColumns} from refold.read_events(${after}, ${upTo}, ${wanted}, ${limit})`;
  await copyRows(db, query, (line) => lines.push(Buffer.from(line)));
  const last = lines.at(-1);
  const full = last !== undefined && lines.length === limit;
  return { lines, upTo: full ? copiedPosition(last) : upTo, full };
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
