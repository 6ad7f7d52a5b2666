import { RefoldError } from '../../errors.ts';
import { beginning, earlierPosition, type GlobalPosition } from '../../events/global-position.ts';
import { type StoredEvent, searchEventPage } from '../../store/browsing/search-events.ts';
import type { EventSearch } from '../../store/browsing/search-windows.ts';
import { searchedFamily, searchedTypes } from '../../store/browsing/searched-types.ts';
import type { InspectedApplication } from './application.ts';

/** Which events to find. All conditions must hold. */
export interface EventFilter {
  readonly family?: string | undefined;
  readonly streamId?: string | undefined;
  /** `Opened`, `account.Opened` or `account.*`. */
  readonly types?: readonly string[] | undefined;
  readonly afterPosition?: GlobalPosition | undefined;
  readonly upToPosition?: GlobalPosition | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly correlationId?: string | undefined;
}

export type EventConditions = Omit<EventSearch, 'after' | 'upTo' | 'order' | 'limit'>;

/** The conditions of a search without its range. @throws RefoldError `BAD_USER_INPUT`, `UNKNOWN_EVENT_TYPE` */
export async function eventConditions(
  { db, log }: InspectedApplication,
  { family, streamId, types, correlationId, since, until }: EventFilter,
): Promise<EventConditions> {
  if ((family === undefined) !== (streamId === undefined))
    throw new RefoldError('BAD_USER_INPUT', `A stream is named by 'family' and 'streamId' together.`);
  return {
    stream:
      family === undefined || streamId === undefined
        ? undefined
        : { family: await searchedFamily(db, log.families, family), streamId },
    types: types && (await searchedTypes(db, log.families, types)),
    correlationId,
    since,
    until,
    payloads: true,
  };
}

// Each visits up to 10,000 positions.
const mostWindows = 20;

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Where the next page continues; null if nothing is left. */
  readonly next: GlobalPosition | null;
}

/** A page of the log. Visits a bounded part of it. @throws RefoldError `BAD_USER_INPUT`, `UNKNOWN_EVENT_TYPE` */
export async function readEventPage(
  application: InspectedApplication,
  filter: EventFilter,
  order: EventSearch['order'],
  first: number,
  place: GlobalPosition | null,
): Promise<EventPage> {
  const { db, log } = application;
  const horizon = await log.horizon();
  const range = {
    after: filter.afterPosition ?? beginning,
    upTo: filter.upToPosition === undefined ? horizon : earlierPosition(horizon, filter.upToPosition),
  };
  const conditions = await eventConditions(application, filter);
  const continued =
    place === null ? {} : order === 'oldestFirst' ? { after: place } : { upTo: earlierPosition(place, range.upTo) };
  return searchEventPage(db, log.families, { ...conditions, ...range, ...continued, order, limit: first }, mostWindows);
}
