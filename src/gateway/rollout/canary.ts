import { createHash } from 'node:crypto';
import { isPromise } from 'node:util/types';
import type { Plugin } from 'graphql-yoga';
import type { Canary, Pins } from '../../projections/declaration/version-map.ts';
import type { ViewerOf } from '../policies/authentication.ts';
import { clientOf } from '../requests/client.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { noPins } from './pins.ts';

/** By which versions an operation is answered before they are active; its client asked for none of them. */
export interface CanaryContext {
  readonly canaries?: Pins;
}

/** Says which canaries an operation goes to; at once where nobody has to be asked who sends it. */
export type CanaryChoice = (transport: TransportContext, document: string | undefined) => Pins | Promise<Pins>;

export interface CanaryChoiceOptions {
  readonly running: () => readonly Canary[];
  readonly viewerOf: ViewerOf;
  /** Proxies in front that tell whom they answer; undefined where that is not known. */
  readonly proxies: number | undefined;
}

// Subscriptions stay with the version that is active: one that began with a canary could not leave it without a break.
const subscriptionWord = /\bsubscription\b/;
const longestIdentity = 200;

/**
 * The same client gets the same version for as long as the canary's share does not shrink: clients are told apart by the header
 * `refold-session`, else by viewer, else by address, and one that can't be told is never chosen by share.
 */
export function createCanaryChoice({ running, viewerOf, proxies }: CanaryChoiceOptions): CanaryChoice {
  async function identity(transport: TransportContext): Promise<string | undefined> {
    const session = headerOf(transport, 'refold-session');
    if (session !== undefined && session !== '') return `session ${session.slice(0, longestIdentity)}`;
    try {
      // Behind a proxy that nobody told of, all clients would be one: all in, or all out.
      return clientOf(await viewerOf(transport), transport, proxies);
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
    const canaries = running();
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

/** Where a client stands, from 0 up to 100: evenly, and elsewhere for each version. */
function shareOf(text: string): number {
  return (createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32) * 100;
}

/** Chooses for what comes by HTTP, before its schema is. */
export function useCanary(choose: CanaryChoice): Plugin {
  return {
    onParams({ params, request, context }) {
      const set = (canaries: Pins) => {
        if (canaries.size > 0) Object.assign(context, { canaries } satisfies CanaryContext);
      };
      const transport: TransportContext = context;
      // Yoga's own context has its request a moment later.
      const chosen = choose(transport.request ? transport : { ...transport, request }, params.query);
      return isPromise(chosen) ? chosen.then(set) : set(chosen);
    },
  };
}
