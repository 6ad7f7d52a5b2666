import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import type { OperatorApi } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { printLine } from '../shared/print-line.ts';
import { jsonArgument } from '../shared/version-argument.ts';
import { eventArguments, limitOf, positionOf, rangeArguments, rangeOf } from './event-arguments.ts';
import { eventLine, eventsToText, eventToText } from './event-text.ts';
import {
  type EventChoice,
  type EventRange,
  eventFields,
  eventPages,
  filterOf,
  type LogEvent,
  latestEvents,
  mostCharacters,
  rangeFilter,
  type WholeEvent,
} from './read-events.ts';

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
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = limitOf(args.limit);
    const range = rangeOf(args);
    const forward = range.from !== undefined || range.since !== undefined;
    const { events: found, next } = await withApi(args, (api) => firstOf(api, args, { range, forward, limit }));
    const events = forward ? found : found.toReversed();
    if (args.json) return console.log(json({ events, earlier: forward ? null : next, later: forward ? next : null }));
    console.log(events.length === 0 ? 'No event matches.' : eventsToText(events));
    if (next !== null)
      console.log(forward ? `There are later ones: --from ${next}` : `There are earlier ones: --to ${next}`);
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
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const position = positionOf('POSITION', args.position).toString();
    const query = `query Event($position: BigInt!) {
      event(position: $position) { ${eventFields(true)} id payloadVersion metadata }
      overview { horizon }
    }`;
    const { event, overview } = await withApi(args, (api) =>
      api.query<{ event: WholeEvent | null; overview: { horizon: string } }>(query, { position }),
    );
    const { horizon } = overview;
    if (!event)
      throw new RefoldError(
        'INVALID_CONFIG',
        `The log has no event at position ${position}: ${BigInt(position) > BigInt(horizon) ? `it ends at ${horizon} so far` : 'refused and repeated appends leave gaps'}.`,
      );
    console.log(args.json ? json(event) : eventToText(event));
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
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = limitOf(args.limit);
    const print = (event: LogEvent) => printLine(args.json ? JSON.stringify(event) : eventLine(event));
    await withApi(args, (api) => printTail(api, args, { follow: args.follow ?? false, limit, print }));
  }),
});

export const events = defineCommand({
  meta: { name: 'events', description: 'List, show and follow the events of the log.' },
  subCommands: { list, show, tail },
});

interface Search {
  readonly range: EventRange;
  /** Whether the first ones are meant, and not the latest. */
  readonly forward: boolean;
  readonly limit: number;
}

/** The first events of a search, fewer than the limit if they are large, and the position of the one that follows; null if none does. */
async function firstOf(
  api: OperatorApi,
  choice: EventChoice,
  { range, forward, limit }: Search,
): Promise<{ readonly events: readonly LogEvent[]; readonly next: string | null }> {
  const filter = { ...filterOf(choice), ...rangeFilter(range) };
  const found: LogEvent[] = [];
  let next: string | null = null;
  let characters = 0;
  // One more shows whether there are more.
  for await (const { items, isLast } of eventPages(api, choice, { filter, forward, limit: limit + 1 })) {
    found.push(...items);
    if (choice.payload) characters += JSON.stringify(items).length;
    if (isLast || characters < mostCharacters) continue;
    const last = BigInt(found.at(-1)?.position ?? 0);
    const rest = forward ? { afterPosition: String(last) } : { upToPosition: String(last - 1n) };
    const following = { filter: { ...filter, ...rest }, forward, limit: 1 };
    for await (const page of eventPages(api, { ...choice, payload: false }, following))
      next = page.items[0]?.position ?? next;
    break;
  }
  if (found.length > limit) next = found.pop()?.position ?? null;
  return { events: found, next };
}

interface Tail {
  readonly follow: boolean;
  readonly limit: number;
  print(event: LogEvent): Promise<void>;
}

async function printTail(api: OperatorApi, choice: EventChoice, { follow, limit, print }: Tail): Promise<void> {
  const filter = filterOf(choice);
  // Subscribed before the latest are read: an event in between is in both, and is printed once.
  const appended = follow
    ? api.subscribe<{ eventsAppended: readonly LogEvent[] }>(
        `subscription Events($filter: EventFilter) { eventsAppended(filter: $filter) { ${eventFields(choice.payload)} } }`,
        { filter },
      )
    : undefined;
  await appended?.next();
  let last = 0n;
  for await (const event of latestEvents(api, choice, filter, limit)) {
    await print(event);
    last = BigInt(event.position);
  }
  for await (const { eventsAppended } of appended ?? [])
    for (const event of eventsAppended) if (BigInt(event.position) > last) await print(event);
}
