import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { createEventTail } from '../../runtime/consumers/tail-events.ts';
import { createPoller } from '../../runtime/scheduling/poller.ts';
import {
  readStoredEvents,
  type StoredEvent,
  searchEventPage,
  searchEvents,
} from '../../store/browsing/search-events.ts';
import type { EventSearch } from '../../store/browsing/search-windows.ts';
import { createNotifications } from '../../store/postgres/notifications.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteEvent, remoteEvents, remoteTail } from '../remote/remote-events.ts';
import { exitWithError, withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { type Operation, withOperation } from '../shared/open-operation.ts';
import { printLine } from '../shared/print-line.ts';
import { jsonArgument } from '../shared/version-argument.ts';
import {
  conditionsOf,
  eventArguments,
  limitOf,
  positionOf,
  rangeArguments,
  rangeOf,
  textRangeOf,
} from './event-arguments.ts';
import { eventLine, eventsToText, eventToText } from './event-text.ts';

const list = defineCommand({
  meta: {
    name: 'list',
    description: 'Show events: the latest that match, or with --from or --since the first ones from there on.',
  },
  args: {
    ...eventArguments,
    ...rangeArguments,
    limit: { type: 'string', description: 'How many events', default: '50', alias: 'n', valueHint: 'N' },
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = limitOf(args.limit);
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteEvents(args, textRangeOf(args), limit);
    }
    const config = await loadConfig(args.config);
    await withOperation(config, async (operation) => {
      const conditions = await conditionsOf(config, operation, args);
      const range = rangeOf(args, await operation.log.horizon());
      const forward = args.from !== undefined || args.since !== undefined;
      const search = { ...conditions, ...range, order: forward ? 'oldest-first' : 'newest-first', limit } as const;
      const { events, next } = await firstOf(operation, search);
      if (!forward) events.reverse();
      if (args.json) return console.log(json({ events, earlier: forward ? null : next, later: forward ? next : null }));
      console.log(events.length === 0 ? 'No event matches.' : eventsToText(events));
      if (next !== null)
        console.log(forward ? `There are later ones: --from ${next}` : `There are earlier ones: --to ${next}`);
    });
  }),
});

const show = defineCommand({
  meta: {
    name: 'show',
    description:
      'Show one event as the log keeps it, with its payload, which may hold personal data, and its metadata.',
  },
  args: {
    position: { type: 'positional', description: 'Its position in the log, such as 1042', required: true },
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const position = positionOf('POSITION', args.position);
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteEvent(args, position.toString());
    }
    await withOperation(await loadConfig(args.config), async ({ db, log }) => {
      const horizon = await log.horizon();
      const [event] = position > horizon ? [] : await readStoredEvents(db, log.families, [position]);
      if (!event)
        throw new RefoldError(
          'INVALID_CONFIG',
          `The log has no event at position ${position}: ${position > horizon ? `it ends at ${horizon} so far` : 'refused and repeated appends leave gaps'}.`,
        );
      console.log(args.json ? json(event) : eventToText(event));
    });
  }),
});

const tail = defineCommand({
  meta: {
    name: 'tail',
    description: 'Show the latest events that match, and with --follow each new one, until Ctrl-C.',
  },
  args: {
    ...eventArguments,
    follow: { type: 'boolean', description: 'Go on with new events', alias: 'f' },
    limit: { type: 'string', description: 'How many of the latest events', default: '10', alias: 'n', valueHint: 'N' },
    json: { type: 'boolean', description: 'As JSON, one line for each event' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = limitOf(args.limit);
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteTail(args, limit);
    }
    const config = await loadConfig(args.config);
    await withOperation(config, async (operation) => {
      const { db, log } = operation;
      const search = await conditionsOf(config, operation, args);
      const from = await log.readHead(null);
      const onEvent = (event: StoredEvent) =>
        printLine(args.json ? JSON.stringify({ ...event, position: event.position.toString() }) : eventLine(event));
      const upTo = from.horizon;
      // Which are the latest is read without payloads, which may be large.
      const latest = { ...search, after: beginning, upTo, order: 'newest-first', limit, payloads: false } as const;
      let first: StoredEvent | undefined;
      for await (const event of searchEvents(db, log.families, latest)) first = event;
      if (first) {
        const after = globalPosition(first.position - 1n);
        const shown = { ...search, after, upTo, order: 'oldest-first', limit } as const;
        for await (const event of searchEvents(db, log.families, shown)) await onEvent(event);
      }
      if (args.follow) await follow(operation, config, { search, from, onEvent });
    });
  }),
});

/** The first events of a search, fewer than the limit if they are large, and the position of the one that follows; null if none does. */
async function firstOf(
  { db, log }: Operation,
  search: EventSearch,
): Promise<{ events: StoredEvent[]; next: GlobalPosition | null }> {
  const { events, next } = await searchEventPage(db, log.families, search, Number.POSITIVE_INFINITY);
  if (next === null) return { events: [...events], next };
  const rest = search.order === 'oldest-first' ? { after: next } : { upTo: next };
  let following: StoredEvent | undefined;
  for await (const event of searchEvents(db, log.families, { ...search, ...rest, limit: 1, payloads: false }))
    following = event;
  return { events: [...events], next: following?.position ?? null };
}

interface Followed extends Pick<Parameters<typeof createEventTail>[0], 'search' | 'from'> {
  onEvent(event: StoredEvent): Promise<void>;
}

/** Follows the log until the process ends, also through outages of the database. */
async function follow(
  { db, log }: Operation,
  { database, runtime }: Awaited<ReturnType<typeof loadConfig>>,
  { onEvent, ...followed }: Followed,
): Promise<never> {
  const newEvents = createEventTail({ db, log, ...followed });
  let isDown = false;
  const poller = createPoller({
    ...runtime.polling,
    async poll(signal) {
      let found: 'found' | 'idle' = 'idle';
      for await (const event of newEvents()) {
        if (signal.aborted) break;
        await onEvent(event);
        found = 'found';
      }
      isDown = false;
      return found;
    },
    onError(error) {
      if (!(error instanceof RefoldError) || error.code !== 'DATABASE_UNAVAILABLE') exitWithError(error);
      if (!isDown) console.error(`refold: ${error.message} Retrying.`);
      isDown = true;
    },
  });
  if (database.notifications)
    createNotifications({ url: db.url, applicationName: 'refold-cli' }).on('refold_events', () => poller.wake());
  poller.wake();
  return new Promise<never>(() => {});
}

export const events = defineCommand({
  meta: { name: 'events', description: 'List, show and follow the events of the log.' },
  subCommands: { list, show, tail },
});
