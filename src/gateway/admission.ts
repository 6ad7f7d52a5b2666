import { anonymous, type Viewer } from '../access.ts';
import type { ViewerOf } from './authentication.ts';
import type { RateLimit } from './rate-limit.ts';
import type { TransportContext } from './transport-context.ts';

/** Lets operations in: tells who asks, and counts the operation. */
export interface Admission {
  /** @throws GraphQLError `UNAUTHENTICATED`, `AUTHENTICATION_UNAVAILABLE`, `RATE_LIMITED` */
  admit(transport: TransportContext): Promise<Viewer | 'system'>;
  /** As {@link admit}, for an operation that may come again on its way to the executor: it is neither asked nor counted twice. */
  admitEarly(transport: TransportContext): Promise<Viewer | 'system'>;
}

export function createAdmission(viewerOf: ViewerOf, rateLimit: RateLimit | undefined): Admission {
  const early = new WeakMap<object, Promise<Viewer | 'system'>>();

  async function admitNow(transport: TransportContext): Promise<Viewer | 'system'> {
    if (!rateLimit) return viewerOf(transport);
    // An attempt with a token that does not count is one of its address: who guesses tokens is slowed down, too.
    const viewer = await viewerOf(transport).catch(async (refusal: unknown) => {
      await rateLimit(anonymous, transport);
      throw refusal;
    });
    await rateLimit(viewer, transport);
    return viewer;
  }

  return {
    admit(transport) {
      const { request } = transport;
      const admitted = request && early.get(request);
      if (!admitted) return admitNow(transport);
      early.delete(request); // for one operation
      return admitted;
    },
    admitEarly(transport) {
      const admitted = admitNow(transport);
      if (transport.request) early.set(transport.request, admitted);
      return admitted;
    },
  };
}
