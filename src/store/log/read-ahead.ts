import { setImmediate } from 'node:timers/promises';
import type { GlobalPosition } from '../../events/global-position.ts';
import { pageLimit } from './page-bytes.ts';
import type { CopiedPage, LogPage, ReadAllOptions } from './read-events.ts';

interface Reading<Page> {
  /** The end of its last page. */
  readonly end: GlobalPosition;
  /** The mean size of the events of its last page with events. */
  readonly eventBytes: number;
  /** The page after that, already requested. */
  readonly next: { readonly upTo: GlobalPosition; readonly era: number; readonly page: Promise<Page> } | undefined;
}

// The number of remembered readers. A process has about one for each group of processors at different positions.
const maxReadings = 8;

/**
 * Reads ahead: if a caller reads one full page after another with the same filter, requests the next page before decoding the current one.
 * The server and the process then work in parallel. Holds at most one page per reader. The number of events that it asks for follows from the size
 * of the last ones.
 */
export function createReadAhead<Page extends Pick<CopiedPage, 'rows' | 'upTo' | 'full'>>(
  copyPage: (options: ReadAllOptions) => Promise<Page>,
  decode: (page: Page) => Promise<LogPage['events']>,
): (options: ReadAllOptions) => Promise<LogPage> {
  const readings = new Map<string, Reading<Page>>();
  const ask = (options: ReadAllOptions, eventBytes: number) =>
    copyPage({ ...options, limit: pageLimit(options.limit, eventBytes) });

  return async (options) => {
    const { after, upTo, era = 0, filter, limit } = options;
    const name = JSON.stringify([filter, limit]);
    const reading = readings.get(name);
    readings.delete(name); // set again below, to keep the most recent at the end of the map
    const continues = reading?.end === after;
    const ahead = continues ? reading?.next : undefined;
    // The page read ahead has an older horizon. It is still valid unless the history has changed since.
    const page = await (ahead && ahead.upTo <= upTo && ahead.era === era
      ? ahead.page
      : ask(options, reading?.eventBytes ?? 0));
    const { length } = page.rows.ends;
    const bytes = page.rows.ends.at(-1) ?? 0;
    const eventBytes = length > 0 ? bytes / length : (reading?.eventBytes ?? 0);

    const next =
      continues && page.full && page.upTo < upTo
        ? { upTo, era, page: ask({ ...options, after: page.upTo }, eventBytes) }
        : undefined;
    next?.page.catch(() => {}); // the next read gets the error
    if (next) await setImmediate(); // sends the request before decoding blocks the event loop
    readings.set(name, { end: page.upTo, eventBytes, next });
    const [oldest] = readings.keys();
    if (readings.size > maxReadings && oldest !== undefined) readings.delete(oldest);
    return { events: await decode(page), upTo: page.upTo, bytes };
  };
}
