import type { IncomingMessage, ServerResponse } from 'node:http';
import { createYoga } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { CheckedAdmin } from '../config/admin-options.ts';
import { adminConnections } from '../config/connections.ts';
import type { Config } from '../config/define-config.ts';
import { limitPlugins } from '../gateway/policies/limits.ts';
import type { HttpHandler } from '../gateway/requests/http-handler.ts';
import type { InspectedApplication } from '../runtime/inspection/application.ts';
import { auditAsCsv } from '../runtime/inspection/audit-log.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type OperatorStores, openOperatorStores } from '../runtime/stores/operator-stores.ts';
import { untilSilent } from '../runtime/stores/until-silent.ts';
import { createEventLog } from '../store/event-log.ts';
import { createCallerRecognition } from './access/recognize-caller.ts';
import type { Caller } from './access/require-right.ts';
import { adminSchema } from './create-admin-schema.ts';
import type { AdminContext } from './schema/context.ts';
import { handleAdminRequests } from './serving/admin-requests.ts';
import { openAdminServices } from './serving/admin-services.ts';
import { createAdminErrorMask } from './serving/mask-errors.ts';

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
  'db' | 'stores' | 'find' | 'lifecycle' | 'log' | 'schemaEvolution' | 'reactors' | 'notifications'
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

// Operators' documents are longer than those of clients, and never deep.
const limits = { maxDepth: 14, maxAliases: 60, maxTokens: 10_000 };
const maxBodySize = 262_144;
// Several times what a page of a verification has.
const maxAnswerSize = 67_108_864;

export function createAdmin(parts: AdminParts): Admin {
  const { runtime, logger } = parts;
  const databases = openForAdmin(parts);
  const application = inspectedApplication(parts, databases);
  const operators = openAdminServices({
    application,
    acting: {
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
    },
    get reactors() {
      return runtime.reactors;
    },
    notifications: runtime.notifications,
    process: parts.process,
  });
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
    context: ({ caller }) => operators.contextOf(caller),
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
      operators.stop();
    },
    async close() {
      operators.stop();
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
    silent: () => parts.runtime.stores.silent?.() ?? new Set(),
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
