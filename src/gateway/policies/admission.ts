import type { Plugin } from 'graphql-yoga';
import { anonymous, type Viewer } from '../../access.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import type { ViewerOf } from './authentication.ts';
import type { RateLimit } from './rate-limit.ts';

/** Lets operations in: says who asks, and counts the operation. */
export interface Admission {
  /**
   * Called before the document is read, so that a document that is refused costs its client as much as one that is answered, and the server
   * less. Called again for the same operation, it returns the same viewer and counts nothing.
   *
   * @throws GraphQLError `UNAUTHENTICATED`, `AUTHENTICATION_UNAVAILABLE`, `RATE_LIMITED`
   */
  admit(transport: TransportContext): Promise<Viewer | 'system'>;
  /** Says who asks for what is no operation. Only an attempt that is refused counts. Throws as {@link Admission.admit}. */
  identify(transport: TransportContext): Promise<Viewer | 'system'>;
}

export function createAdmission(viewerOf: ViewerOf, rateLimit: RateLimit | undefined): Admission {
  const admitted = new WeakMap<object, Promise<Viewer | 'system'>>();

  async function identify(transport: TransportContext): Promise<Viewer | 'system'> {
    if (!rateLimit) return viewerOf(transport);
    // An attempt with a token that does not count is one of its address: who guesses tokens is slowed down, too.
    return viewerOf(transport).catch(async (refusal: unknown) => {
      await rateLimit(anonymous, transport);
      throw refusal;
    });
  }

  async function count(transport: TransportContext): Promise<Viewer | 'system'> {
    const viewer = await identify(transport);
    await rateLimit?.(viewer, transport);
    return viewer;
  }

  return {
    identify,
    admit(transport) {
      // What comes by HTTP is an operation for each request, whichever ways through the gateway it tries.
      const operation = transport.message ?? transport.req ?? transport.request;
      if (operation === undefined) return count(transport);
      const before = admitted.get(operation);
      if (before) return before;
      const counted = count(transport);
      admitted.set(operation, counted);
      return counted;
    },
  };
}

/** Admits what yoga answers, before it reads the body. */
export function useAdmission({ admit }: Admission): Plugin {
  return {
    async onRequestParse({ request, serverContext }) {
      await admit({ ...(serverContext as TransportContext), request }); // of a request to node:http, `req` is there
    },
  };
}
