import { setTimeout as pause } from 'node:timers/promises';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { createGraphQLError, createYoga } from 'graphql-yoga';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { Authenticator, Viewer } from '../access.ts';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../config/define-config.ts';
import { RefoldError } from '../errors.ts';
import { noRollout } from '../projections/projection/version-map.ts';
import { createGuard } from '../schema/access/guard.ts';
import { restrictReads, restrictResponse } from '../schema/access/restricted-reads.ts';
import { refuseOtherCopy } from '../schema/contract/check-graphql.ts';
import type { ReadModels } from '../schema/contract/operation-context.ts';
import type { SchemaExtension } from '../schema/extend-schema.ts';
import { isTracing } from '../tracing.ts';
import { createGatewayMetrics, createRefusalCounter } from './gateway-metrics.ts';
import { withOrderedTypes } from './http/accepted-types.ts';
import { refuseAdmin } from './http/admin-page.ts';
import { useBodyLimit } from './http/body-limit.ts';
import { dropForeignCookies, withCrossOrigin } from './http/cross-origin.ts';
import { useCsrfPrevention } from './http/csrf-prevention.ts';
import { useGraphiql } from './http/graphiql.ts';
import { listen } from './http/http-server.ts';
import { knownHosts, withKnownHosts } from './http/known-hosts.ts';
import { answerPlainPosts } from './http/plain-post.ts';
import { useReadableRequests } from './http/readable-requests.ts';
import { useReadiness } from './http/readiness.ts';
import { withReadableTargets } from './http/request-target.ts';
import { sendShutdownResponse } from './http/shutdown-response.ts';
import { useWordedRefusals } from './http/worded-refusals.ts';
import { createCompiledOperations } from './operations/compiled-operations.ts';
import { createDocumentCache } from './operations/document-cache.ts';
import type { GatewayServices } from './operations/gateway-services.ts';
import { createOperationObserver } from './operations/observed-operations.ts';
import { createOperationScope } from './operations/operation-scope.ts';
import { type OperationRequest, prepareOperation, type Yoga } from './operations/run-operation.ts';
import { createSchemaSource, useServedSchema } from './operations/served-schema.ts';
import { createShadows } from './operations/shadow.ts';
import { createAuthentication } from './policies/authentication.ts';
import { createGatewayLimits } from './policies/concurrency-limit.ts';
import { useNoIntrospection } from './policies/introspection.ts';
import { limitPlugins } from './policies/limits.ts';
import { documentOf, usePersistedOperations } from './policies/persisted-operations.ts';
import { createRateLimit } from './policies/rate-limit.ts';
import { createRequestPolicies, useRequestPolicies } from './policies/request-policies.ts';
import { type ClientOf, rateLimitClient as clientBehind } from './requests/client.ts';
import { useCompression } from './requests/compression.ts';
import { type HttpHandler, inOrder } from './requests/http-handler.ts';
import { createErrorMask } from './requests/mask-errors.ts';
import { onlyWhile } from './requests/only-while.ts';
import { withTracedRequests } from './requests/traced-requests.ts';
import { useWrittenPosition } from './requests/written-position.ts';
import { createCanaryChoice, useCanary } from './rollout/canary.ts';
import { noPins } from './rollout/pins.ts';
import { createSubscriptions } from './subscriptions/subscriptions.ts';
import { createEventStreams } from './transports/event-stream.ts';
import { createSingleConnections } from './transports/single-connection.ts';
import { createWebSocketEndpoint, refuseUpgrade } from './transports/web-socket.ts';

/** `commands`, `extension` and `auth` are read for each schema and each operation: in development, they may be replaced. */
export interface GatewayParts {
  readonly services: GatewayServices;
  /** The declared commands; each becomes a mutation. */
  readonly commands: readonly Command[];
  readonly options: Config['gateway'];
  /** The application's additions to the schema. */
  readonly extension?: SchemaExtension | undefined;
  /** Authenticates callers. Without it everybody is anonymous, and everything that declares no access is open. */
  readonly auth?: Authenticator | undefined;
  readonly development: boolean;
  /** How long requests are answered after `close`, in seconds, while the readiness check fails. @default 0 */
  readonly drainSeconds?: number;
  readonly logger: Logger;
  /** The operation that GraphiQL shows at first. */
  readonly defaultQuery?: string;
  /** The registry served at `/metrics`. @default one with the gateway's own metrics */
  readonly metrics?: Registry;
  /** Handles what is below `/admin`, in this order: the API, then the files of the page. @default 404 */
  readonly admin?: readonly HttpHandler[];
}

/** The GraphQL endpoint of a process, at `/graphql` over HTTP, server-sent events and WebSocket. */
export interface Gateway {
  /** `http://127.0.0.1:4000` */
  readonly url: string;
  readonly port: number;
  /** Answers a query or mutation in this process, as a plain POST would be: as `system`, to which no access rule applies, or as a viewer. */
  execute(
    source: string,
    variables?: Readonly<Record<string, unknown>>,
    viewer?: Viewer | 'system',
  ): Promise<ExecutionResult>;
  /**
   * Fails the readiness check from now on, and still answers for `drainSeconds`. Then it refuses requests, ends subscriptions in a way that
   * makes clients reconnect to another process, waits for running operations, and resolves within a bounded time. A second call ends the
   * drain early.
   */
  close(): Promise<void>;
}

// By default a mutation waits up to 5 s for its stream, and a query up to 5 s for its position. Within 7 s both have had their own
// response, and an operator does not wait long for a deployment.
const closeTimeoutMs = 7000;

/**
 * @throws RefoldError `PORT_IN_USE`, `INVALID_DECLARATION` if the declarations do not form a schema, or `INVALID_CONFIG` if the installed
 * `graphql` does not fit
 */
export async function createGateway(given: GatewayParts): Promise<Gateway> {
  const { services, options, development, logger } = given;
  const { maxPageSize, maxBodySize, proxies, rateLimit, persistedOperations } = options;
  const { rollout = noRollout } = services.versions;
  const isOpen = options.graphiql ?? development;
  const source = createSchemaSource({
    versions: services.versions,
    options: () => ({
      commands: given.commands,
      maxPageSize,
      federation: options.federation,
      extension: given.extension,
      authenticates: given.auth !== undefined,
    }),
    logger,
  });
  refuseOtherCopy('graphql-yoga', createGraphQLError('') instanceof GraphQLError);
  const maskError = createErrorMask({ logger, hints: isOpen, onTableError: () => services.lookAtTables?.() });
  const viewerOf = createAuthentication(() => given.auth, logger);
  const registry = given.metrics ?? new Registry();
  const onRefused = createRefusalCounter(registry);
  const observer = createOperationObserver({ requestLog: options.requestLog ? logger : undefined });
  const policies = createRequestPolicies(
    viewerOf,
    rateLimit && createRateLimit({ limit: rateLimit, proxies, onRefused: () => onRefused('operations') }),
    observer?.refused,
  );
  const clientOf: ClientOf = (viewer, transport) => clientBehind(viewer, transport, proxies);
  const { sockets: openSockets, subscriptions: openSubscriptions } = createGatewayLimits(options, onRefused);
  const guardOf = (viewer: Viewer | 'system') =>
    viewer === 'system' ? undefined : createGuard(viewer, given.auth ? 'authenticated' : 'public');
  const scope = createOperationScope({
    ...{ services, logger, policies, guardOf, maxCost: options.maxCost },
    contextOf: () => given.extension?.context,
  });
  const subscriptions = createSubscriptions({
    scope,
    observer,
    maskError,
    policies,
    limit: openSubscriptions,
    clientOf,
  });
  const metrics = createGatewayMetrics(registry, {
    subscriptions: openSubscriptions.count,
    sockets: openSockets.count,
    messages: subscriptions.counts,
    rollout,
    onCanary: (operation) => services.canaries?.count(operation),
  });
  const chooseCanaries = createCanaryChoice({ rollout, viewerOf, proxies });
  const readsFor = (reads: ReadModels, viewer: Viewer | 'system') => {
    const guard = guardOf(viewer);
    return guard ? restrictReads(reads, guard) : reads;
  };
  const shadows = createShadows({ services, source, readsFor, registry, logger });
  let closing: Promise<void> | undefined;
  const hurry = new AbortController();

  const yoga: Yoga = createYoga({
    graphqlEndpoint: '/graphql',
    healthCheckEndpoint: '#', // disables yoga's check, because no request URL ends with '#'; useReadiness handles it
    graphiql: false,
    landingPage: false,
    cors: false, // withCrossOrigin
    batching: false,
    multipart: false,
    parserAndValidationCache: { documentCache: createDocumentCache(), errorCache: createDocumentCache() },
    maxRequestBodySize: false, // useBodyLimit limits it
    logging: false, // maskError logs
    maskedErrors: { maskError, errorMessage: '' },
    plugins: [
      useReadiness(source, () => closing !== undefined, services),
      ...(isOpen ? [useGraphiql(given.defaultQuery, options.compression)] : []),
      metrics.plugin,
      useCsrfPrevention(),
      useRequestPolicies(policies),
      useBodyLimit(maxBodySize),
      useReadableRequests(),
      useWordedRefusals(),
      usePersistedOperations(persistedOperations),
      onlyWhile(() => rollout.canaries.length > 0, useCanary(chooseCanaries)),
      useServedSchema(source),
      ...limitPlugins(options),
      ...(isOpen ? [] : [useNoIntrospection()]),
      scope.plugin,
      useWrittenPosition(),
      ...(observer ? [observer.plugin] : []),
      onlyWhile(() => rollout.shadows.length > 0, shadows.plugin),
      subscriptions.plugin,
      ...(options.compression ? [useCompression()] : []),
    ],
  });
  const documentFor = (request: OperationRequest) => documentOf(persistedOperations, request);
  const transport = { yoga, subscriptions, policies, maskError, maxBodySize, documentFor };
  const sockets = { limit: openSockets, clientOf, origins: options.cors?.origins ?? [] };
  const webSockets = createWebSocketEndpoint({
    ...transport,
    ...sockets,
    connectionInitTimeout: options.requestTimeout,
    maxPayload: maxBodySize,
    chooseCanaries: (...given) => (rollout.canaries.length > 0 ? chooseCanaries(...given) : noPins),
    logger,
  });

  const compiled = createCompiledOperations({
    yoga,
    source,
    services,
    policies,
    observer,
    restrict(query, viewer) {
      const guard = guardOf(viewer);
      return guard ? restrictResponse(query, guard) : query;
    },
    maxCost: options.maxCost,
    onAnswered: metrics.onAnswered,
    shadows,
    logger,
  });
  const eventStreams = createEventStreams(transport);
  const singleConnections = createSingleConnections({
    ...transport,
    ...sockets,
    reservationTimeout: options.requestTimeout,
  });
  const isKnownHost = knownHosts({ ...options, development });
  const listener = inOrder(
    [
      ...(isTracing ? [withTracedRequests] : []),
      withReadableTargets,
      withKnownHosts(isKnownHost),
      ...(given.admin ?? []),
      withOrderedTypes,
      withCrossOrigin(options.cors),
      // The most frequent ones first.
      answerPlainPosts(yoga, { ...transport, isCompressed: options.compression, compiled }),
      eventStreams.handler,
      singleConnections.handler,
      ...(given.admin ? [] : [refuseAdmin]),
    ],
    (req, res) => void yoga(req, res),
  );
  const http = await listen(listener, options).catch((error) => {
    void singleConnections.close(0); // without streams there is nothing to wait for
    eventStreams.close();
    source.close();
    throw error;
  });
  http.server.on('upgrade', (request, socket, head) => {
    dropForeignCookies(request, options.cors);
    if (!isKnownHost(request)) refuseUpgrade(socket, '403 Forbidden');
    else if (URL.parse(request.url ?? '', http.url)?.pathname === '/graphql') webSockets.upgrade(request, socket, head);
    else refuseUpgrade(socket, '404 Not Found');
  });

  async function close(): Promise<void> {
    http.drain();
    await pause((given.drainSeconds ?? 0) * 1000, undefined, { signal: hurry.signal }).catch(() => {}); // it rejects only on abort
    const closed = http.close(closeTimeoutMs, sendShutdownResponse);
    eventStreams.close();
    await Promise.all([webSockets.close(closeTimeoutMs), singleConnections.close(closeTimeoutMs)]);
    subscriptions.endAll();
    await closed;
    await shadows.stop();
    source.close();
    await yoga.dispose();
  }

  return {
    url: http.url,
    port: http.port,
    async execute(query, variables, viewer = 'system') {
      const transport = { viewer, message: {} };
      const known = await compiled.answer(query, { query, variables }, transport);
      if (known) return { data: JSON.parse(known.data) };
      const prepared = await prepareOperation(yoga, maskError, { query, variables }, transport);
      if (!('run' in prepared)) return { errors: prepared };
      if (!prepared.isSubscription) return prepared.run();
      throw new RefoldError('BAD_USER_INPUT', 'A subscription has more than one result. Use a client that subscribes.');
    },
    close() {
      if (closing !== undefined) hurry.abort();
      closing ??= close();
      return closing;
    },
  };
}
