import type { ExecutionResult } from 'graphql';
import { createYoga, isAsyncIterable } from 'graphql-yoga';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../define-config.ts';
import { RefoldError } from '../errors.ts';
import { useBodyLimit } from './body-limit.ts';
import { useCsrfPrevention } from './csrf-prevention.ts';
import type { GatewayServices } from './gateway-services.ts';
import { graphiqlOptions } from './graphiql.ts';
import { listen } from './http-server.ts';
import { useNoIntrospection } from './introspection.ts';
import { limitPlugins } from './limits.ts';
import { createErrorMask } from './mask-errors.ts';
import { useMetrics } from './metrics.ts';
import { useOperationScope } from './operation-scope.ts';
import { useReadiness } from './readiness.ts';
import { prepareOperation, type Yoga } from './run-operation.ts';
import { createSchemaSource, useServedSchema } from './served-schema.ts';
import { createSubscriptions } from './subscription-limit.ts';
import { createWebSocketEndpoint, refuseUpgrade } from './web-socket.ts';

export interface GatewayOptions {
  readonly services: GatewayServices;
  /** The declared commands: each becomes a mutation. */
  readonly commands: readonly Command[];
  readonly options: Config['gateway'];
  readonly development: boolean;
  readonly logger: Logger;
  /** What GraphiQL shows at first. */
  readonly defaultQuery?: string;
  /** Served at `/metrics`. @default one with the gateway's own metrics */
  readonly metrics?: Registry;
}

/** The GraphQL endpoint of a process, at `/graphql` over HTTP, server-sent events and WebSocket. */
export interface Gateway {
  /** `http://127.0.0.1:4000` */
  readonly url: string;
  readonly port: number;
  /** Answers a request as the socket would. */
  fetch(url: string, init?: RequestInit): Promise<Response>;
  /** Executes a query or mutation in this process, through the same pipeline. */
  execute(source: string, variables?: Readonly<Record<string, unknown>>): Promise<ExecutionResult>;
  /** Takes no more requests, ends subscriptions, lets operations end, and resolves within a bounded time. */
  close(): Promise<void>;
}

// A query may wait for a position for 5 s by default, and an operator waits for a deployment.
const closingPatience = 5000;

/** @throws RefoldError `PORT_IN_USE`, or `INVALID_DECLARATION` where no schema can be made of the declarations. */
export async function createGateway(given: GatewayOptions): Promise<Gateway> {
  const { services, commands, options, development, logger } = given;
  const { maxPageSize, maxBodySize, maxSubscriptions } = options;
  const isOpen = options.graphiql ?? development;
  const source = createSchemaSource({ versions: services.versions, commands, maxPageSize, logger });
  const subscriptions = createSubscriptions(maxSubscriptions);
  const maskError = createErrorMask(logger);
  let closing: Promise<void> | undefined;

  const yoga: Yoga = createYoga({
    graphqlEndpoint: '/graphql',
    healthCheckEndpoint: '/health/live',
    ...graphiqlOptions(isOpen, given.defaultQuery),
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    maxRequestBodySize: false, // kept by useBodyLimit
    logging: false, // maskError logs
    maskedErrors: { maskError, errorMessage: '' },
    plugins: [
      useReadiness(source, () => closing !== undefined),
      useMetrics(given.metrics ?? new Registry(), subscriptions.count),
      useCsrfPrevention(),
      useBodyLimit(maxBodySize),
      useServedSchema(source),
      ...limitPlugins(options),
      ...(isOpen ? [] : [useNoIntrospection()]),
      useOperationScope(services, logger),
      subscriptions.plugin,
    ],
  });
  const webSockets = createWebSocketEndpoint({ yoga, maskError, maxPayload: maxBodySize });

  const http = await listen(yoga, options.host, options.port).catch((error) => {
    source.close();
    throw error;
  });
  http.server.on('upgrade', (request, socket, head) => {
    if (URL.parse(request.url ?? '', http.url)?.pathname === '/graphql') webSockets.upgrade(request, socket, head);
    else refuseUpgrade(socket, '404 Not Found');
  });

  async function close(): Promise<void> {
    const closed = http.close(closingPatience);
    // Before the subscriptions end: told that they are complete, WebSocket clients would not come back.
    await webSockets.close();
    subscriptions.endAll();
    await closed;
    source.close();
    await yoga.dispose();
  }

  return {
    url: http.url,
    port: http.port,
    fetch: async (url, init) => yoga.fetch(new URL(url, http.url), init ?? {}),
    async execute(query, variables) {
      const prepared = await prepareOperation(yoga, maskError, { query, variables }, {});
      if (!('run' in prepared)) return { errors: prepared };
      const result = await prepared.run();
      if (!isAsyncIterable(result)) return result;
      await result[Symbol.asyncIterator]().return?.();
      throw new RefoldError(
        'BAD_USER_INPUT',
        'A subscription has more than one answer; subscribe to it with a client.',
      );
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}
