import { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import { type Authenticator, anonymous, type Credentials, type Viewer } from '../../access.ts';
import { RefoldError } from '../../errors.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';

/**
 * Authenticates the caller of an operation: this program itself if the transport says so, else the viewer that the authenticator returns.
 *
 * @throws GraphQLError `UNAUTHENTICATED`, with status 401 for HTTP, if the credentials are invalid; `AUTHENTICATION_UNAVAILABLE`, with 503,
 * if they cannot be checked at the moment
 */
export type ViewerOf = (transport: TransportContext) => Promise<Viewer | 'system'>;

export function createAuthentication(authenticator: () => Authenticator | undefined, logger: Logger): ViewerOf {
  let problem: string | undefined;
  let refused = 0;

  /** Logs one line when authentication stops working or the reason changes, and one when it works again. */
  function watch(now: string | undefined): void {
    if (now !== undefined && now !== problem) logger.error(`authentication: ${now}`);
    if (now === undefined && problem !== undefined) {
      logger.info({ refused }, 'authentication works again; operations refused meanwhile are counted here');
      refused = 0;
    }
    problem = now;
  }

  return async (transport) => {
    if (transport.viewer) return transport.viewer;
    const authenticate = authenticator();
    if (!authenticate) return anonymous;
    try {
      const viewer = (await authenticate(credentialsOf(transport))) ?? anonymous;
      if (viewer !== anonymous || authenticate.problem) watch(authenticate.problem?.());
      if (viewer.expiresAt !== null && viewer.expiresAt.getTime() <= Date.now()) throw expired();
      return viewer;
    } catch (error) {
      if (!(error instanceof RefoldError)) throw error;
      if (error.code === 'UNAUTHENTICATED') throw refusal(error);
      if (error.code !== 'AUTHENTICATION_UNAVAILABLE') throw error;
      watch(authenticate.problem?.() ?? problem ?? error.message);
      refused++;
      throw unavailable(error);
    }
  };
}

export function expired(): RefoldError<'UNAUTHENTICATED'> {
  return new RefoldError('UNAUTHENTICATED', 'Your credentials have expired. Authenticate again.');
}

/** Whether the credentials could not be checked, as opposed to being invalid. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof GraphQLError && error.extensions.code === 'AUTHENTICATION_UNAVAILABLE';
}

function credentialsOf(transport: TransportContext): Credentials {
  return {
    header: (name) => headerOf(transport, name.toLowerCase()),
    connectionParams: transport.connectionParams ?? {},
  };
}

function refusal(error: RefoldError): GraphQLError {
  return new GraphQLError(error.message, {
    extensions: {
      code: error.code,
      http: { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
    },
  });
}

/** The reason names the operator's servers; it is only in the log. */
function unavailable({ code }: RefoldError): GraphQLError {
  return new GraphQLError('Tokens can’t be checked at the moment. Nothing was done. Try again later.', {
    extensions: { code, http: { status: 503, headers: { 'retry-after': '5' } } },
  });
}
