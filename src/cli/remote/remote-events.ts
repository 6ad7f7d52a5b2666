import { RefoldError } from '../../errors.ts';
import { integer } from '../shared/format.ts';
import { printLine } from '../shared/print-line.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote, type RemoteApi } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';

interface RemoteEvent {
  readonly position: string;
  readonly recordedAt: string;
  readonly family: string;
  readonly streamId: string;
  readonly streamPosition: string;
  readonly type: string;
  readonly correlationId: string | null;
  readonly payload?: unknown;
}

/** Which events, as the command line names them. */
export interface EventChoice {
  readonly stream?: string | undefined;
  readonly type?: string | undefined;
  readonly correlation?: string | undefined;
  readonly payload?: boolean | undefined;
}

/** Where in the log to look: positions as texts, times as ISO 8601. */
export interface EventRange {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

const line = (payload: boolean | undefined) =>
  `position recordedAt family streamId streamPosition type correlationId${payload ? ' payload' : ''}`;

/** Prints events: the latest that match, or with `from` or `since` the first ones from there on. */
export async function remoteEvents(
  args: RemoteArguments & EventChoice,
  range: EventRange,
  limit: number,
): Promise<void> {
  const forward = range.from !== undefined || range.since !== undefined;
  const filter = { ...filterOf(args), ...rangeOf(range) };
  const found: RemoteEvent[] = [];
  let next: string | null = null;
  let characters = 0;
  // One more shows whether there are more.
  const api = openRemote(args.remote);
  for await (const { items, isLast } of pages(api, args, { filter, forward, limit: limit + 1 })) {
    found.push(...items);
    if (args.payload) characters += JSON.stringify(items).length;
    if (isLast || characters < mostCharacters) continue;
    const last = BigInt(found.at(-1)?.position ?? 0);
    const rest = forward ? { afterPosition: String(last) } : { upToPosition: String(last - 1n) };
    const following = { filter: { ...filter, ...rest }, forward, limit: 1 };
    for await (const page of pages(api, { ...args, payload: false }, following)) next = page.items[0]?.position ?? next;
    break;
  }
  if (found.length > limit) next = found.pop()?.position ?? null;
  const events = forward ? found : found.toReversed();
  if (args.json)
    return console.log(
      JSON.stringify({ events, earlier: forward ? null : next, later: forward ? next : null }, null, 2),
    );
  console.log(events.length === 0 ? 'No event matches.' : toText(events));
  if (next !== null)
    console.log(forward ? `There are later ones: --from ${next}` : `There are earlier ones: --to ${next}`);
}

/** Prints one event with all that the log has of it. */
export async function remoteEvent(args: RemoteArguments, position: string): Promise<void> {
  const { event } = await openRemote(args.remote).query<{
    event: (RemoteEvent & { id: string; payloadVersion: number; metadata: unknown }) | null;
  }>(`query Event($position: BigInt!) { event(position: $position) { ${line(true)} id payloadVersion metadata } }`, {
    position,
  });
  if (!event) throw new RefoldError('INVALID_CONFIG', `The log has no event at position ${position}.`);
  if (args.json) return console.log(JSON.stringify(event, null, 2));
  const lines: readonly (readonly [string, string])[] = [
    ['position', integer(BigInt(event.position))],
    ['event', event.type],
    ['id', event.id],
    ['recorded', event.recordedAt],
    ['stream', `${event.family}/${event.streamId}, event ${event.streamPosition}`],
    ['payload version', String(event.payloadVersion)],
    ['metadata', JSON.stringify(event.metadata, null, 2)],
    ['payload', JSON.stringify(event.payload, null, 2)],
  ];
  console.log(lines.map(([name, value]) => `${name.padEnd(16)}${value}`).join('\n'));
}

/** Prints the latest events that match, and with `follow` each new one, until the process ends. */
export async function remoteTail(
  args: RemoteArguments & EventChoice & { readonly follow: boolean | undefined },
  limit: number,
): Promise<void> {
  const api = openRemote(args.remote);
  const filter = filterOf(args);
  const print = (event: RemoteEvent) => printLine(args.json ? JSON.stringify(event) : eventLine(event));
  // Subscribed before the latest are read: an event in between is in both, and is printed once.
  const appended = args.follow
    ? api.subscribe<{ eventsAppended: readonly RemoteEvent[] }>(
        `subscription Events($filter: EventFilter) { eventsAppended(filter: $filter) { ${line(args.payload)} } }`,
        { filter },
      )
    : undefined;
  await appended?.next();
  let last = 0n;
  for await (const event of latest(api, args, filter, limit)) {
    await print(event);
    last = BigInt(event.position);
  }
  for await (const { eventsAppended } of appended ?? [])
    for (const event of eventsAppended) if (BigInt(event.position) > last) await print(event);
}

/** The latest events, the oldest of them first. Which they are is read without payloads, which may be large. */
async function* latest(
  api: RemoteApi,
  choice: EventChoice,
  filter: object,
  limit: number,
): AsyncGenerator<RemoteEvent> {
  const found: string[] = [];
  for await (const { items } of pages(api, { ...choice, payload: false }, { filter, forward: false, limit }))
    found.push(...items.map(({ position }) => position));
  const [to, from] = [found[0], found.at(-1)];
  const range = { filter: { ...filter, ...rangeOf({ from, to }) }, forward: true, limit: found.length };
  if (from !== undefined) for await (const { items } of pages(api, choice, range)) yield* items;
}

// The largest page of the API.
const pageSize = 1000;
// What is shown together is held in memory.
const mostCharacters = 8 * 1024 * 1024;

async function* pages(
  api: RemoteApi,
  { payload }: EventChoice,
  { filter, forward, limit }: { readonly filter: object; readonly forward: boolean; readonly limit: number },
): AsyncGenerator<{ readonly items: readonly RemoteEvent[]; readonly isLast: boolean }> {
  const query = `query Events($filter: EventFilter, $order: EventOrder, $first: Int, $after: String) {
    events(filter: $filter, order: $order, first: $first, after: $after) { items { ${line(payload)} } next }
  }`;
  let left = limit;
  for (let after: string | null = null; ; ) {
    const page: { events: { items: RemoteEvent[]; next: string | null } } = await api.query(query, {
      filter,
      order: forward ? 'OLDEST_FIRST' : 'NEWEST_FIRST',
      first: Math.min(pageSize, left),
      after,
    });
    const { items, next } = page.events;
    left -= items.length;
    const isLast = next === null || left <= 0;
    yield { items, isLast };
    if (isLast) return;
    after = next;
  }
}

/** @throws RefoldError `INVALID_CONFIG` */
function filterOf({ stream, type, correlation }: EventChoice): object {
  const slash = stream?.indexOf('/') ?? -1;
  if (stream !== undefined && (slash < 1 || slash === stream.length - 1))
    throw new RefoldError('INVALID_CONFIG', `'${stream}' is not a stream; write it like shopping_cart/c1.`);
  return {
    ...(stream === undefined ? {} : { family: stream.slice(0, slash), streamId: stream.slice(slash + 1) }),
    ...(type === undefined ? {} : { types: type.split(',').map((name) => name.trim()) }),
    ...(correlation === undefined ? {} : { correlationId: correlation }),
  };
}

function rangeOf({ from, to, since, until }: EventRange): object {
  return {
    ...(from === undefined || from === '0' ? {} : { afterPosition: String(BigInt(from) - 1n) }),
    ...(to === undefined ? {} : { upToPosition: to }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

function toText(events: readonly RemoteEvent[]): string {
  const payloads = events.some((event) => 'payload' in event);
  return textTable(
    ['position', 'recorded', 'event', 'stream', 'number', 'correlation', ...(payloads ? ['payload'] : [])],
    events.map((event) => [
      integer(BigInt(event.position)),
      event.recordedAt,
      event.type,
      `${event.family}/${event.streamId}`,
      event.streamPosition,
      event.correlationId ?? '-',
      ...(payloads ? [JSON.stringify(event.payload)] : []),
    ]),
  );
}

function eventLine(event: RemoteEvent): string {
  const { position, recordedAt, type, family, streamId, streamPosition, correlationId } = event;
  const payload = 'payload' in event ? [JSON.stringify(event.payload)] : [];
  return [
    integer(BigInt(position)),
    recordedAt,
    type,
    `${family}/${streamId}`,
    streamPosition,
    correlationId ?? '-',
    ...payload,
  ].join('  ');
}
