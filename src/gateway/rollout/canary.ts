import { createHash } from 'node:crypto';
import { isPromise } from 'node:util/types';
import type { Plugin } from 'graphql-yoga';
import type { Canary, Pins, Rollout } from '../../projections/projection/version-map.ts';
import type { ViewerOf } from '../policies/authentication.ts';
import { rateLimitClient } from '../requests/client.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { noPins } from './pins.ts';

/** The ready versions that serve an operation as canaries; the client did not ask for them. */
export interface CanaryContext {
  readonly canaries?: Pins;
}

/** Chooses the canaries for an operation; synchronous unless the viewer has to be authenticated. */
export type CanaryChoice = (transport: TransportContext, document: string | undefined) => Pins | Promise<Pins>;

export interface CanaryChoiceOptions {
  readonly rollout: Rollout;
  readonly viewerOf: ViewerOf;
  /** The number of proxies in front that append the client's address; undefined if unknown. */
  readonly proxies: number | undefined;
}

// Subscriptions stay on the active version: one that began on a canary could not leave it without a break.
const subscriptionWord = /\bsubscription\b/;
const longestIdentity = 200;

/**
 * Chooses canaries by header or by share. A client gets the same version as long as the canary's share does not shrink. Clients are
 * identified by the header `refold-session`, else by viewer, else by address. A client that cannot be identified is never chosen by share.
 */
export function createCanaryChoice({ rollout, viewerOf, proxies }: CanaryChoiceOptions): CanaryChoice {
  async function identity(transport: TransportContext): Promise<string | undefined> {
    const session = headerOf(transport, 'refold-session');
    if (session !== undefined && session !== '') return `session ${session.slice(0, longestIdentity)}`;
    try {
      // Behind an unconfigured proxy all clients would share one identity: all or none would get the canary.
      return rateLimitClient(await viewerOf(transport), transport, proxies);
    } catch {
      return undefined; // refused when it is executed
    }
  }

  async function withShares(transport: TransportContext, chosen: Map<string, number>, shared: readonly Canary[]) {
    const who = await identity(transport);
    for (const { name, version, percent } of who === undefined ? [] : shared)
      if (shareOf(`${name}@${version} ${who}`) < percent) chosen.set(name, version);
    return chosen;
  }

  return (transport, document) => {
    const { canaries } = rollout;
    if (canaries.length === 0 || transport.viewer || subscriptionWord.test(document ?? '')) return noPins;
    const chosen = new Map<string, number>();
    for (const { name, version, header } of canaries) {
      const found = header && headerOf(transport, header.name);
      if (header && found !== undefined && (header.value === null || found === header.value)) chosen.set(name, version);
    }
    const shared = canaries.filter(({ name, percent }) => percent > 0 && !chosen.has(name));
    return shared.length === 0 ? chosen : withShares(transport, chosen, shared);
  };
}

/** Maps a client to a number from 0 up to 100, evenly distributed, and independent for each version. */
function shareOf(text: string): number {
  return (createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32) * 100;
}

/** Chooses the canaries of HTTP operations, before their schema is chosen. */
export function useCanary(choose: CanaryChoice): Plugin {
  return {
    onParams({ params, request, context }) {
      const set = (canaries: Pins) => {
        if (canaries.size > 0) Object.assign(context, { canaries } satisfies CanaryContext);
      };
      const transport: TransportContext = context;
      // Yoga sets the request of its own context only later.
      const chosen = choose(transport.request ? transport : { ...transport, request }, params.query);
      return isPromise(chosen) ? chosen.then(set) : set(chosen);
    },
  };
}
