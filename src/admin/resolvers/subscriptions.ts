import { isDeepStrictEqual } from 'node:util';
import { createEventTail } from '../../runtime/consumers/tail-events.ts';
import { dbOfVersion, declaredVersionOf } from '../../runtime/inspection/application.ts';
import { eventConditions } from '../../runtime/inspection/events.ts';
import type { InspectedReactor, InspectedVersion, Overview } from '../../runtime/inspection/overview.ts';
import { type Verification, verifyVersion } from '../../runtime/verification/verify.ts';
import { type PayloadVerification, verifyPayloads } from '../../runtime/verification/verify-payloads.ts';
import type { StoredEvent } from '../../store/browsing/search-events.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { requireRight } from '../access/require-right.ts';
import type { AdminContext } from '../schema/context.ts';
import type { SubscriptionResolvers } from '../schema/resolver-types.ts';
import type { SubscriptionEventsAppendedArgs, SubscriptionVerifyArgs } from '../schema/sdl.generated.ts';
import { eventFilter } from './log.ts';

interface Change {
  readonly overview: Overview;
  readonly versions: InspectedVersion[];
  readonly removedVersions: string[];
  readonly reactors: InspectedReactor[];
  readonly removedReactors: string[];
}

/** What differs between two overviews; everything if there is none before. */
function changeBetween(before: Overview | undefined, overview: Overview): Change {
  const versions = overview.versions.filter(
    (one) => !before?.versions.some((other) => other.id === one.id && isDeepStrictEqual(other, one)),
  );
  const reactors = overview.reactors.filter(
    (one) => !before?.reactors.some((other) => other.name === one.name && isDeepStrictEqual(other, one)),
  );
  const gone = <T>(all: readonly T[] = [], now: readonly T[]) => all.filter((one) => !now.includes(one));
  return {
    overview,
    versions,
    reactors,
    removedVersions: gone(
      before?.versions.map(({ id }) => id),
      overview.versions.map(({ id }) => id),
    ),
    removedReactors: gone(
      before?.reactors.map(({ name }) => name),
      overview.reactors.map(({ name }) => name),
    ),
  };
}

async function* overviewChanges({ services }: AdminContext, signal: AbortSignal): AsyncGenerator<Change> {
  let before: Overview | undefined;
  for await (const overview of services.overviews(signal)) {
    yield changeBetween(before, overview);
    before = overview;
  }
}

// A message ends with either of them.
const mostEvents = 500;
const mostCharacters = 8 * 1024 * 1024;

async function* appendedEvents(
  { services }: AdminContext,
  given: Parameters<typeof eventFilter>[0],
  signal: AbortSignal,
): AsyncGenerator<StoredEvent[]> {
  const { application } = services;
  const { db, log } = application;
  const search = await eventConditions(application, eventFilter(given));
  const newEvents = createEventTail({ db, log, search, from: await log.readHead(null) });
  yield [];
  for await (const _ of services.appends(signal)) {
    let [message, characters]: [StoredEvent[], number] = [[], 0];
    try {
      for await (const event of newEvents()) {
        if (signal.aborted) return;
        message.push(event);
        characters += JSON.stringify(event.payload).length;
        if (message.length < mostEvents && characters < mostCharacters) continue;
        yield message;
        [message, characters] = [[], 0];
      }
    } catch (error) {
      // It goes on when the database is back.
      if (!isOutage(error)) throw error;
    }
    if (message.length > 0) yield message;
  }
}

interface Progress<T> {
  readonly position: bigint;
  readonly of: bigint;
  readonly result: T | null;
}

/** Ends the verification if the signal aborts. */
async function* verification(
  context: AdminContext,
  id: string,
  oneOf: number,
  signal: AbortSignal,
): AsyncGenerator<Progress<Verification>> {
  const { application } = context.services;
  const { log, config } = application;
  const projection = declaredVersionOf(config, id);
  const db = await dbOfVersion(application, id);
  yield* heavyWork(context, (onProgress) =>
    verifyVersion({
      ...{ db, log, projection, readSchema: config.database.readSchema, oneOf: Math.max(1, oneOf), onProgress },
      async onPage() {
        signal.throwIfAborted();
      },
    }),
  );
}

function payloadVerification(
  context: AdminContext,
  signal: AbortSignal,
): AsyncGenerator<Progress<PayloadVerification>> {
  return heavyWork(context, (onProgress) =>
    verifyPayloads(context.services.application.log, (position, of) => {
      signal.throwIfAborted();
      onProgress(position, of);
    }),
  );
}

/** Reports the progress of work about twice a second, and then the result. */
async function* heavyWork<T extends { readonly position: bigint }>(
  { services }: AdminContext,
  begin: (onProgress: (position: bigint, of: bigint) => void) => Promise<T>,
): AsyncGenerator<Progress<T>> {
  let progress: Progress<T> = { position: 0n, of: await services.application.log.head(), result: null };
  let done: T | undefined;
  const work = services
    .heavy(() =>
      begin((position, of) => {
        progress = { position, of, result: null };
      }),
    )
    .then((result) => {
      done = result;
    });
  const ended = work.catch(() => {}); // awaited below
  yield progress;
  while (!done) {
    const isOver = await Promise.race([ended.then(() => true), elapsed(500)]);
    if (isOver) await work;
    else yield progress;
  }
  yield { position: done.position, of: done.position, result: done };
}

function elapsed(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms).unref());
}

/** Ends a generator when its subscriber leaves or the process stops, also while it waits. */
function untilLeft<T>(
  { services }: AdminContext,
  begin: (signal: AbortSignal) => AsyncGenerator<T>,
): AsyncIterableIterator<T> {
  const leaving = new AbortController();
  const messages = begin(AbortSignal.any([leaving.signal, services.stopping]));
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () =>
      messages.next().catch((error: unknown) => {
        if (leaving.signal.aborted) return { done: true, value: undefined };
        throw error;
      }),
    return(value) {
      leaving.abort();
      return messages.return(value);
    },
  };
}

/** What a generator yields is the value of the field. */
function following<Args, T>(subscribe: (args: Args, context: AdminContext) => AsyncIterable<T>) {
  return {
    subscribe: (_: unknown, args: Args, context: AdminContext) => subscribe(args, context),
    resolve: (message: T) => message,
  };
}

export const subscriptions: SubscriptionResolvers = {
  overviewChanges: following((_, context) => untilLeft(context, (signal) => overviewChanges(context, signal))),
  eventsAppended: following(({ filter }: SubscriptionEventsAppendedArgs, context) =>
    untilLeft(context, (signal) => appendedEvents(context, filter, signal)),
  ),
  verify: following(({ version, oneOf }: SubscriptionVerifyArgs, context) => {
    requireRight(context.caller, 'verify');
    return untilLeft(context, (signal) => verification(context, version, oneOf ?? 1, signal));
  }),
  verifyPayloads: following((_, context) => {
    requireRight(context.caller, 'verify');
    requireRight(context.caller, 'data');
    return untilLeft(context, (signal) => payloadVerification(context, signal));
  }),
};
