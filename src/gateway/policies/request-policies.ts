import type { Plugin } from 'graphql-yoga';
import { anonymous, type Viewer } from '../../access.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import type { ViewerOf } from './authentication.ts';
import type { RateLimit } from './rate-limit.ts';

/** Authenticates and limits operations. */
export interface RequestPolicies {
  /**
   * Authenticates the caller and counts the operation. Called before the document is read: so a refused document counts as much as an
   * executed one, and costs the server less. A second call for the same operation returns the same viewer and counts nothing.
   *
   * @throws GraphQLError `UNAUTHENTICATED`, `AUTHENTICATION_UNAVAILABLE`, `RATE_LIMITED`
   */
  authenticateAndLimit(transport: TransportContext): Promise<Viewer | 'system'>;
  /**
   * Authenticates the caller of a request that is not an operation. Counts only failed attempts. Throws like {@link
   * RequestPolicies.authenticateAndLimit}.
   */
  authenticate(transport: TransportContext): Promise<Viewer | 'system'>;
}

/** `onRefused` is called for an operation that is not authenticated or over its limit. */
export function createRequestPolicies(
  viewerOf: ViewerOf,
  rateLimit: RateLimit | undefined,
  onRefused: (transport: TransportContext, error: unknown) => void = () => {},
): RequestPolicies {
  const known = new WeakMap<object, Promise<Viewer | 'system'>>();

  async function authenticate(transport: TransportContext): Promise<Viewer | 'system'> {
    if (!rateLimit) return viewerOf(transport);
    // An attempt with an invalid token counts for its address, which slows down clients that guess tokens.
    return viewerOf(transport).catch(async (refusal: unknown) => {
      await rateLimit(anonymous, transport);
      throw refusal;
    });
  }

  async function count(transport: TransportContext): Promise<Viewer | 'system'> {
    try {
      const viewer = await authenticate(transport);
      await rateLimit?.(viewer, transport);
      return viewer;
    } catch (error) {
      onRefused(transport, error);
      throw error;
    }
  }

  return {
    authenticate,
    authenticateAndLimit(transport) {
      // An HTTP request is one operation, whichever paths through the gateway it takes.
      const operation = transport.message ?? transport.req ?? transport.request;
      if (operation === undefined) return count(transport);
      const before = known.get(operation);
      if (before) return before;
      const counted = count(transport);
      known.set(operation, counted);
      return counted;
    },
  };
}

/** Authenticates and limits yoga's requests, before their body is read. */
export function useRequestPolicies({ authenticateAndLimit }: RequestPolicies): Plugin {
  return {
    async onRequestParse({ request, serverContext }) {
      await authenticateAndLimit({ ...(serverContext as TransportContext), request }); // for a request to node:http, `req` is set
    },
  };
}
