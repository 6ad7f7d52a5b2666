import { getOperationAST } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { Gauge, Histogram, type Registry } from 'prom-client';

// From a look-up by key to a query that waits for its position.
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts and times operations, and serves the registry at `/metrics` in the format of Prometheus. */
export function useMetrics(registry: Registry, subscriptions: () => number): Plugin {
  const seconds = new Histogram({
    name: 'refold_graphql_operation_seconds',
    help: 'Time from the start of the execution to its answer, by type of operation and outcome.',
    labelNames: ['operation', 'outcome'],
    buckets,
    registers: [registry],
  });
  new Gauge({
    name: 'refold_graphql_subscriptions',
    help: 'Subscriptions that this process serves now.',
    registers: [registry],
    collect() {
      this.set(subscriptions());
    },
  });

  return {
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
          seconds.observe({ operation, outcome }, (performance.now() - startedAt) / 1000);
        },
      };
    },
  };
}
