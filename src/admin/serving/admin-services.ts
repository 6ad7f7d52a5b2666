import { setTimeout as pause } from 'node:timers/promises';
import DataLoader from 'dataloader';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { hidesKey } from '../../projections/declaration/hidden-values.ts';
import type { ActionServices } from '../../runtime/actions/action.ts';
import { createActions } from '../../runtime/actions/actions.ts';
import type { InspectedApplication } from '../../runtime/inspection/application.ts';
import { readTakenBy } from '../../runtime/inspection/letters.ts';
import { createOverviewReader } from '../../runtime/inspection/overview.ts';
import { readStoredEvents, type StoredEvent } from '../../store/browsing/search-events.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import type { Caller } from '../access/require-right.ts';
import type { AdminContext, AdminServices } from '../schema/context.ts';

export interface AdminServicesParts {
  readonly application: InspectedApplication;
  /** What actions use. In a gateway, these are the connections of the application. */
  readonly acting: ActionServices;
  readonly reactors: AdminServices['reactors'];
  readonly notifications: Notifications;
  /** The name of this process. */
  readonly process: string;
}

/** What answers operations of the admin API, however they arrive. */
export interface OpenAdminServices {
  readonly services: AdminServices;
  /** The context of one operation. */
  contextOf(caller: Caller): AdminContext;
  /** Ends subscriptions. */
  stop(): void;
}

// In milliseconds, between two overviews for somebody who follows them, and between two polls of the log without a notification.
const overviewMs = 1000;
const appendMs = 1000;

/** Members of `parts` are read for each operation: in development, declarations may be replaced. */
export function openAdminServices(parts: AdminServicesParts): OpenAdminServices {
  const { application } = parts;
  const stopping = new AbortController();
  const services: AdminServices = {
    application,
    overview: createOverviewReader(application),
    get reactors() {
      return parts.reactors;
    },
    actions: createActions(parts.acting),
    process: parts.process,
    hidesKeys(version) {
      const declared = application.config.projections.find(({ id }) => id === version);
      return declared !== undefined && hidesKey(declared);
    },
    heavy: oneAtATime(),
    overviews: (signal) => overviews(services, signal),
    appends: (signal) => appends(parts.notifications, signal),
    stopping: stopping.signal,
  };
  return {
    services,
    contextOf: (caller) => ({
      caller,
      services,
      events: eventLoader(services),
      takenBy: new DataLoader((letters) => readTakenBy(application, letters)),
    }),
    stop: () => stopping.abort(),
  };
}

function eventLoader({ application }: AdminServices): DataLoader<GlobalPosition, StoredEvent | null> {
  return new DataLoader(async (positions) => {
    const { db, log } = application;
    const found = new Map(
      (await readStoredEvents(db, log.families, positions)).map((event) => [event.position, event]),
    );
    return positions.map((position) => found.get(position) ?? null);
  });
}

/** Refuses a second one: two heavy reads would take all connections of operators, and the time of the database. */
function oneAtATime(): AdminServices['heavy'] {
  let isBusy = false;
  return async (work) => {
    if (isBusy)
      throw new RefoldError(
        'QUERY_TOO_COMPLEX',
        'Another verification or diff runs in this process. Try again when it has ended.',
      );
    isBusy = true;
    try {
      return await work();
    } finally {
      isBusy = false;
    }
  };
}

/** Also through outages of the database. */
async function* overviews({ overview }: AdminServices, signal: AbortSignal) {
  let last: Awaited<ReturnType<typeof overview.read>> | undefined;
  while (!signal.aborted) {
    const read = await overview.read().catch((error: unknown) => {
      if (!isOutage(error)) throw error;
    });
    if (read && read !== last) {
      last = read;
      yield read;
    }
    await pause(overviewMs, undefined, { signal }).catch(() => {}); // it rejects only on abort
  }
}

async function* appends(notifications: Notifications, signal: AbortSignal) {
  let wake = () => {};
  const unsubscribe = notifications.on('refold_events', () => wake());
  const onAbort = () => wake();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      yield;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      const timer = setTimeout(resolve, appendMs);
      await promise;
      clearTimeout(timer);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    unsubscribe();
  }
}
