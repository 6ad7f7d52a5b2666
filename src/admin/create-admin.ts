import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import DataLoader from 'dataloader';
import { createYoga } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { CheckedAdmin } from '../config/admin-options.ts';
import { adminConnections } from '../config/connections.ts';
import type { Config } from '../config/define-config.ts';
import { RefoldError } from '../errors.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import { limitPlugins } from '../gateway/policies/limits.ts';
import type { HttpHandler } from '../gateway/requests/http-handler.ts';
import { hidesKey } from '../projections/declaration/hidden-values.ts';
import { createActions } from '../runtime/actions/actions.ts';
import type { InspectedApplication } from '../runtime/inspection/application.ts';
import { auditAsCsv } from '../runtime/inspection/audit-log.ts';
import { readTakenBy } from '../runtime/inspection/letters.ts';
import { createOverviewReader } from '../runtime/inspection/overview.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type OperatorStores, openOperatorStores } from '../runtime/stores/operator-stores.ts';
import { untilSilent } from '../runtime/stores/until-silent.ts';
import { readStoredEvents, type StoredEvent } from '../store/browsing/search-events.ts';
import { createEventLog } from '../store/event-log.ts';
import { isOutage } from '../store/postgres/database-errors.ts';
import { createCallerRecognition } from './access/recognize-caller.ts';
import type { Caller } from './access/require-right.ts';
import { adminSchema } from './create-admin-schema.ts';
import { handleAdminRequests } from './serving/admin-requests.ts';
import { createAdminErrorMask } from './serving/mask-errors.ts';
import type { AdminContext, AdminServices } from './types/builder.ts';

/** `config` is read for each operation: in development, it may be replaced. */
export interface AdminParts {
  readonly config: Config;
  readonly admin: CheckedAdmin;
  readonly runtime: AdminRuntime;
  readonly url: string;
  /** The name of this process. */
  readonly process: string;
  readonly logger: Logger;
}

type AdminRuntime = Pick<
  Runtime,
  'db' | 'stores' | 'find' | 'lifecycle' | 'log' | 'schemaEvolution' | 'reactors' | 'notifications' | 'storeProblems'
>;

/** The admin API of a process. */
export interface Admin {
  /** Handles requests to the API, and passes on all others. */
  readonly handler: HttpHandler;
  /** Ends subscriptions in a way that makes clients subscribe again at another process. Requests are still answered. */
  endSubscriptions(): void;
  /** Closes its connections. Call it when no request is under way. */
  close(): Promise<void>;
}

// In milliseconds, between two overviews for somebody who follows them, and between two polls of the log without a notification.
const overviewMs = 1000;
const appendMs = 1000;

// Operators' documents are longer than those of clients, and never deep.
const limits = { maxDepth: 14, maxAliases: 60, maxTokens: 10_000 };
const maxBodySize = 262_144;
// Several times what a page of a verification has.
const maxAnswerSize = 67_108_864;

export function createAdmin(parts: AdminParts): Admin {
  const { runtime, logger } = parts;
  const databases = openForAdmin(parts);
  const stopping = new AbortController();
  const application = inspectedApplication(parts, databases);
  const services: AdminServices = {
    application,
    overview: createOverviewReader(application),
    get reactors() {
      return runtime.reactors;
    },
    actions: createActions({
      db: runtime.db,
      stores: runtime.stores,
      get find() {
        return runtime.find;
      },
      get lifecycle() {
        return runtime.lifecycle;
      },
      get log() {
        return runtime.log;
      },
      get config() {
        return parts.config;
      },
    }),
    process: parts.process,
    hidesKeys(version) {
      const declared = parts.config.projections.find(({ id }) => id === version);
      return declared !== undefined && hidesKey(declared);
    },
    heavy: oneAtATime(),
    overviews: (signal) => overviews(services, signal),
    appends: (signal) => appends(runtime, signal),
    stopping: stopping.signal,
  };
  const yoga = createYoga<{ caller: Caller }, AdminContext>({
    schema: adminSchema(),
    graphqlEndpoint: '/admin/graphql',
    graphiql: false,
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    maxRequestBodySize: maxBodySize,
    logging: false, // the mask logs
    maskedErrors: { maskError: createAdminErrorMask(logger, databases.stores.apart), errorMessage: '' },
    plugins: [...limitPlugins(limits)],
    context: ({ caller }) => ({
      caller,
      services,
      events: eventLoader(services),
      takenBy: new DataLoader((letters) => readTakenBy(application, letters)),
    }),
  });
  const streams = new Set<ServerResponse>();
  const operate = (req: IncomingMessage, res: ServerResponse, caller: Caller) => {
    streams.add(res);
    res.once('close', () => streams.delete(res));
    void yoga(req, res, { caller });
  };
  return {
    handler: handleAdminRequests({
      recognize: createCallerRecognition(() => parts.admin),
      operate,
      audit: (filter) => auditAsCsv(application, filter),
      logger,
    }),
    endSubscriptions() {
      // Without `complete`: after that, clients would not subscribe again.
      for (const res of streams) if (isEventStream(res)) res.destroy();
      stopping.abort();
    },
    async close() {
      stopping.abort();
      await yoga.dispose();
      await databases.close();
    },
  };
}

/** Few connections, and a time limit for each statement: reads of operators never take what clients need. */
function openForAdmin(parts: AdminParts): OperatorStores {
  const { database, readStores, gateway } = parts.config;
  const declared = {
    ...{ database, readStores, gateway },
    get projections() {
      return parts.config.projections;
    },
  };
  return openOperatorStores(declared, parts.url, {
    maxConnections: adminConnections,
    statementTimeoutMs: gateway.statementTimeout,
    maxAnswerSize,
    applicationName: 'refold-admin',
    silent: () => new Set(Object.keys(parts.runtime.storeProblems())),
    untilSilent,
  });
}

function inspectedApplication(parts: AdminParts, { db, stores, find }: OperatorStores): InspectedApplication {
  const { runtime } = parts;
  return {
    db,
    stores,
    find,
    get log() {
      return createEventLog(db, parts.config.families);
    },
    get config() {
      return parts.config;
    },
    get schemaEvolution() {
      return runtime.schemaEvolution;
    },
  };
}

function isEventStream(res: ServerResponse): boolean {
  return String(res.getHeader('content-type') ?? '').startsWith('text/event-stream');
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

async function* appends({ notifications }: AdminParts['runtime'], signal: AbortSignal) {
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
