import type { Plugin } from 'graphql-yoga';
import type { SchemaSource } from './served-schema.ts';

/**
 * `/health/ready`: 200 once every projection has an active version here, 503 before, and again while the process stops,
 * so that a load balancer sends nothing to a process that would answer `PROJECTION_NOT_READY`. A version whose processor has stopped at an
 * event is said to be so, and ready: what it answers is stale, in every process alike. Also 503 while appends or reads do not get through to
 * the database; `problems` says why.
 */
export function useReadiness(
  source: SchemaSource,
  isStopping: () => boolean,
  stopped: () => ReadonlySet<string>,
  problems: () => object,
): Plugin {
  return {
    onRequest({ request, url, fetchAPI, endResponse }) {
      if (!request.url.includes('/health/ready') || url.pathname !== '/health/ready') return;
      const projections = [...source.current().versions.served.values()].map(({ projection, active, state }) => ({
        projection: projection.name,
        version: projection.version,
        state,
        // A table that can't be read is so for every process: to send requests elsewhere helps nobody, and the other projections answer.
        ready: active || state === 'active',
        ...(stopped().has(projection.id) ? { processor: 'stopped' } : {}),
      }));
      const stopping = isStopping();
      const found = problems();
      const reachable = Object.keys(found).length === 0;
      const ready = !stopping && reachable && projections.every((projection) => projection.ready);
      const body = JSON.stringify({
        ready,
        ...(stopping ? { stopping } : {}),
        ...(reachable ? {} : { problems: found }),
        projections,
      });
      endResponse(
        new fetchAPI.Response(body, {
          status: ready ? 200 : 503,
          headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
        }),
      );
    },
  };
}
