import { RefoldError } from '../../errors.ts';
import type { OperatorApi } from '../api/operator-api.ts';

/** An event as the log keeps it. */
export interface LogEvent {
  readonly position: string;
  readonly recordedAt: string;
  readonly family: string;
  readonly streamId: string;
  readonly streamPosition: string;
  readonly type: string;
  readonly correlationId: string | null;
  readonly payload?: unknown;
}

export interface WholeEvent extends LogEvent {
  readonly id: string;
  readonly payloadVersion: number;
  readonly metadata: unknown;
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

/** The fields of an event. */
export const eventFields = (payload: boolean | undefined) =>
  `position recordedAt family streamId streamPosition type correlationId${payload ? ' payload' : ''}`;

/** The latest events, the oldest of them first. Which they are is read without payloads, which may be large. */
export async function* latestEvents(
  api: OperatorApi,
  choice: EventChoice,
  filter: object,
  limit: number,
): AsyncGenerator<LogEvent> {
  const found: string[] = [];
  for await (const { items } of eventPages(api, { ...choice, payload: false }, { filter, forward: false, limit }))
    found.push(...items.map(({ position }) => position));
  const [to, from] = [found[0], found.at(-1)];
  const range = { filter: { ...filter, ...rangeFilter({ from, to }) }, forward: true, limit: found.length };
  if (from !== undefined) for await (const { items } of eventPages(api, choice, range)) yield* items;
}

// The largest page of the API.
const pageSize = 1000;
// What is shown together is held in memory.
export const mostCharacters = 8 * 1024 * 1024;

export async function* eventPages(
  api: OperatorApi,
  { payload }: EventChoice,
  { filter, forward, limit }: { readonly filter: object; readonly forward: boolean; readonly limit: number },
): AsyncGenerator<{ readonly items: readonly LogEvent[]; readonly isLast: boolean }> {
  const query = `query Events($filter: EventFilter, $order: EventOrder, $first: Int, $after: String) {
    events(filter: $filter, order: $order, first: $first, after: $after) { items { ${eventFields(payload)} } next }
  }`;
  let left = limit;
  for (let after: string | null = null; ; ) {
    const page: { events: { items: LogEvent[]; next: string | null } } = await api.query(query, {
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
export function filterOf({ stream, type, correlation }: EventChoice): object {
  const slash = stream?.indexOf('/') ?? -1;
  if (stream !== undefined && (slash < 1 || slash === stream.length - 1))
    throw new RefoldError('INVALID_CONFIG', `'${stream}' is not a stream; write it like shopping_cart/c1.`);
  return {
    ...(stream === undefined ? {} : { family: stream.slice(0, slash), streamId: stream.slice(slash + 1) }),
    ...(type === undefined ? {} : { types: type.split(',').map((name) => name.trim()) }),
    ...(correlation === undefined ? {} : { correlationId: correlation }),
  };
}

export function rangeFilter({ from, to, since, until }: EventRange): object {
  return {
    ...(from === undefined || from === '0' ? {} : { afterPosition: String(BigInt(from) - 1n) }),
    ...(to === undefined ? {} : { upToPosition: to }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}
