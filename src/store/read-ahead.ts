import type { GlobalPosition } from '../events/global-position.ts';
import type { EventPage, ReadAllOptions } from './read-events.ts';

type ReadPage = (options: ReadAllOptions) => Promise<EventPage>;

interface Reading {
  /** Where its last page ended. */
  end: GlobalPosition;
  /** The page after that, already asked for. */
  next: { readonly upTo: GlobalPosition; readonly page: Promise<EventPage> } | undefined;
}

// Readings that are remembered; a process has about as many as it has groups of processors that are apart.
const mostReadings = 8;

/**
 * Asks for the next page while this one is handled, where somebody reads page after full page with one filter: server and
 * process work at the same time. Holds a page of each such reading at most.
 */
export function createReadAhead(readPage: ReadPage): ReadPage {
  const readings = new Map<string, Reading>();

  return async (options) => {
    const { after, upTo, filter, limit } = options;
    const name = JSON.stringify([filter, limit]);
    const reading = readings.get(name);
    readings.delete(name); // and set again below: the map keeps the latest at its end
    const continues = reading?.end === after;
    const ahead = continues ? reading?.next : undefined;
    // What was asked for ahead had an older horizon, and is as true as ever.
    const page = await (ahead && ahead.upTo <= upTo ? ahead.page : readPage(options));

    const more = page.upTo < upTo && page.events.length === limit;
    const next = continues && more ? { upTo, page: readPage({ ...options, after: page.upTo }) } : undefined;
    next?.page.catch(() => {}); // whoever reads on gets the error
    readings.set(name, { end: page.upTo, next });
    const [oldest] = readings.keys();
    if (readings.size > mostReadings && oldest !== undefined) readings.delete(oldest);
    return page;
  };
}
