import type { Plugin } from 'graphql-yoga';
import { defaultStore } from '../../projections/projection/projection.ts';
import type { GatewayServices } from '../operations/gateway-services.ts';
import type { SchemaSource } from '../operations/served-schema.ts';

/**
 * `/health/live` returns 200 while the process responds.
 *
 * `/health` returns the body of `/health/ready`, always with 200 while the process responds. It is for people, and for platforms that
 * support only one address. Such platforms restart a process that fails the check, which would never end for a process that builds its
 * first version.
 *
 * `/health/ready` returns 200 once every projection has an active version here. It returns 503 before that, and again while the process
 * stops: a load balancer then sends nothing to a process that would answer `PROJECTION_NOT_READY`.
 * - A version whose processor has stopped at an event is reported as such, but ready: its data is stale in every process alike.
 * - A version whose unique values nothing checks is reported, with the appends that are refused meanwhile, but ready: reads are answered.
 * - A read model whose declared versions are all retired causes 503 while another process serves it. If none does, it does not: clients are
 *   better off with the other read models.
 * - A read store that can't be used is named in `readStores`, with the reason, but does not count: every process is affected alike.
 * - It returns 503 while appends or reads do not reach the database; `problems` says why.
 */
export function useReadiness(
  source: SchemaSource,
  isStopping: () => boolean,
  services: Pick<GatewayServices, 'versions' | 'problems' | 'storeProblems' | 'lost'>,
): Plugin {
  return {
    onRequest({ request, url, fetchAPI, endResponse }) {
      if (!request.url.includes('/health')) return;
      if (url.pathname === '/health/live')
        return endResponse(new fetchAPI.Response(null, { status: 200, headers: { 'cache-control': 'no-store' } }));
      const isProbe = url.pathname === '/health/ready';
      if (!isProbe && url.pathname !== '/health') return;
      const stopped = services.versions.stopped?.();
      const unchecked = services.versions.unchecked?.();
      const projections = [...source.current().versions.served.values()].map(({ projection, active, state }) => ({
        projection: projection.name,
        version: projection.version,
        ...(projection.store === defaultStore ? {} : { readStore: projection.store }),
        state,
        // A table that cannot be read fails in every process: routing requests elsewhere would not help, and the other projections work.
        ready: active || state === 'active',
        ...(stopped?.has(projection.id) ? { processor: 'stopped' } : {}),
        ...(unchecked?.has(projection.id) ? { appends: unchecked.get(projection.id) } : {}),
      }));
      const lost = (services.lost?.() ?? []).map(({ name, version, answeredBy }) => ({
        projection: name,
        version,
        state: 'retired',
        ready: false,
        answeredBy,
      }));
      const stopping = isStopping();
      const found = services.problems?.() ?? {};
      const storesAway = services.storeProblems?.() ?? {};
      const reachable = Object.keys(found).length === 0;
      const isWhole = projections.every((one) => one.ready) && lost.every(({ answeredBy }) => answeredBy.length === 0);
      const ready = !stopping && reachable && isWhole;
      const body = JSON.stringify({
        ready,
        ...(stopping ? { stopping } : {}),
        ...(reachable ? {} : { problems: found }),
        ...(Object.keys(storesAway).length > 0 ? { readStores: storesAway } : {}),
        projections: [...projections, ...lost],
      });
      endResponse(
        new fetchAPI.Response(body, {
          status: ready || !isProbe ? 200 : 503,
          headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
        }),
      );
    },
  };
}
