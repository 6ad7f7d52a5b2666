import { getOperationAST } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Rollout } from '../projections/projection/version-map.ts';
import { collectProcessMetrics } from './http/process-metrics.ts';
import type { ServedSchemaContext } from './operations/served-schema.ts';
import type { SentMessages } from './subscriptions/subscription.ts';

// From a lookup by key to a query that waits for its position, in seconds.
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Measured {
  /** The number of open subscriptions. */
  readonly subscriptions: () => number;
  readonly sockets: () => number;
  readonly messages: Readonly<SentMessages>;
  readonly rollout: Rollout;
  /** Records one operation for each running canary. */
  onCanary(operation: { name: string; version: number; byCanary: boolean; failed: boolean }): void;
}

export interface Metrics {
  readonly plugin: Plugin;
  /** Records a query that was answered without the executor, while no canary runs. */
  readonly onAnswered: (seconds: number) => void;
}

/** Counts requests that limits refuse. */
export function createRefusalCounter(registry: Registry): (limit: string) => void {
  const refused = new Counter({
    name: 'refold_graphql_refused_total',
    help: 'What was refused, by the limit that was reached.',
    labelNames: ['limit'],
    registers: [registry],
  });
  return (limit) => refused.inc({ limit });
}

function registerMessages(registry: Registry, messages: Readonly<SentMessages>): void {
  const counter = (name: string, help: string, count: () => number) =>
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(count());
      },
    });
  counter(
    'refold_subscription_messages_total',
    'Messages that this process has sent to subscribers.',
    () => messages.delivered,
  );
  counter(
    'refold_subscription_coalesced_total',
    'Messages that became part of a later one, because the subscriber had not taken them yet.',
    () => messages.coalesced,
  );
}

/** Counts and times operations, and serves the registry at `/metrics` in the Prometheus format. */
export function createGatewayMetrics(
  registry: Registry,
  { subscriptions, sockets, messages, rollout, onCanary }: Measured,
): Metrics {
  collectProcessMetrics(registry);
  const seconds = new Histogram({
    name: 'refold_graphql_operation_seconds',
    help: 'Time from the start of the execution to its answer, by type of operation and outcome.',
    labelNames: ['operation', 'outcome'],
    buckets,
    registers: [registry],
  });
  const canarySeconds = new Histogram({
    name: 'refold_graphql_canary_seconds',
    help: 'The same while a version is a canary: of operations that it answers (`canary`), and of the `others`.',
    labelNames: ['version', 'group', 'operation', 'outcome'],
    buckets,
    registers: [registry],
  });
  const compiled = new Counter({
    name: 'refold_graphql_compiled_total',
    help: 'Queries that were answered by one statement, without the executor.',
    registers: [registry],
  });
  new Gauge({
    name: 'refold_graphql_sockets',
    help: 'WebSockets, and streams of the single connection mode, that this process has open now.',
    registers: [registry],
    collect() {
      this.set(sockets());
    },
  });
  new Gauge({
    name: 'refold_graphql_subscriptions',
    help: 'Subscriptions that this process serves now.',
    registers: [registry],
    collect() {
      this.set(subscriptions());
    },
  });

  registerMessages(registry, messages);

  const answered = seconds.labels('query', 'ok');
  const plugin: Plugin = {
    onRequest({ request, url, fetchAPI, endResponse }) {
      if (!request.url.includes('/metrics') || url.pathname !== '/metrics') return undefined;
      return registry
        .metrics()
        .then((body) =>
          endResponse(new fetchAPI.Response(body, { headers: { 'content-type': registry.contentType } })),
        );
    },
    onExecute({ args }) {
      const startedAt = performance.now();
      const operation = getOperationAST(args.document, args.operationName)?.operation ?? 'query';
      return {
        onExecuteDone({ result }) {
          const outcome = !isAsyncIterable(result) && result.errors?.length ? 'error' : 'ok';
          const took = (performance.now() - startedAt) / 1000;
          seconds.observe({ operation, outcome }, took);
          for (const { name, version } of rollout.canaries) {
            const id = `${name}@${version}`;
            const { served } = args.contextValue as Partial<ServedSchemaContext>; // set by the schema plugin
            const group = served?.canaries.includes(id) ? 'canary' : 'others';
            canarySeconds.observe({ version: id, group, operation, outcome }, took);
            if (operation !== 'subscription')
              onCanary({ name, version, byCanary: group === 'canary', failed: outcome === 'error' });
          }
        },
      };
    },
  };

  const onAnswered = (duration: number) => {
    answered.observe(duration);
    compiled.inc();
  };
  return { plugin, onAnswered };
}
