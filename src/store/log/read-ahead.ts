import { setImmediate } from 'node:timers/promises';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { CopiedPage, EventPage, ReadAllOptions } from './read-events.ts';

interface Reading<Page> {
  /** Where its last page ended. */
  readonly end: GlobalPosition;
  /** The page after that, already asked for. */
  readonly next: { readonly upTo: GlobalPosition; readonly era: number; readonly page: Promise<Page> } | undefined;
}

// Readings that are remembered; a process has about as many as it has groups of processors that are apart.
const mostReadings = 8;

/**
 * Where somebody reads page after full page with one filter, asks for the next page before this one is decoded and handled:
 * server and process work at the same time. Holds a page of each such reading at most.
 */
export function createReadAhead<Page extends Pick<CopiedPage, 'upTo' | 'full'>>(
  copyPage: (options: ReadAllOptions) => Promise<Page>,
  decode: (page: Page) => EventPage['events'],
): (options: ReadAllOptions) => Promise<EventPage> {
  const readings = new Map<string, Reading<Page>>();

  return async (options) => {
    const { after, upTo, era = 0, filter, limit } = options;
    const name = JSON.stringify([filter, limit]);
    const reading = readings.get(name);
    readings.delete(name); // and set again below: the latest are at the end of the map
    const continues = reading?.end === after;
    const ahead = continues ? reading?.next : undefined;
    // What was asked for ahead had an older horizon, and is as true as ever, unless history has changed since.
    const page = await (ahead && ahead.upTo <= upTo && ahead.era === era ? ahead.page : copyPage(options));

    const next =
      continues && page.full && page.upTo < upTo
        ? { upTo, era, page: copyPage({ ...options, after: page.upTo }) }
        : undefined;
    next?.page.catch(() => {}); // whoever reads on gets the error
    if (next) await setImmediate(); // the question leaves before decoding keeps the process busy
    readings.set(name, { end: page.upTo, next });
    const [oldest] = readings.keys();
    if (readings.size > mostReadings && oldest !== undefined) readings.delete(oldest);
    return { events: decode(page), upTo: page.upTo };
  };
}
