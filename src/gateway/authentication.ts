import { GraphQLError } from 'graphql';
import { type Authenticator, anonymous, type Credentials, type Viewer } from '../access.ts';
import { RefoldError } from '../errors.ts';
import { headerOf, type TransportContext } from './transport-context.ts';

/**
 * Who asks, by what the transport brought: the program itself where it says so, else whom the authenticator tells.
 *
 * @throws GraphQLError `UNAUTHENTICATED`, with status 401 for HTTP, where what was shown does not count
 */
export async function viewerOf(
  authenticate: Authenticator | undefined,
  transport: TransportContext,
): Promise<Viewer | 'system'> {
  if (transport.viewer) return transport.viewer;
  if (!authenticate) return anonymous;
  try {
    const viewer = (await authenticate(credentialsOf(transport))) ?? anonymous;
    if (viewer.expiresAt !== null && viewer.expiresAt.getTime() <= Date.now()) throw expired();
    return viewer;
  } catch (error) {
    if (error instanceof RefoldError && error.code === 'UNAUTHENTICATED') throw refusal(error);
    throw error;
  }
}

export function expired(): RefoldError<'UNAUTHENTICATED'> {
  return new RefoldError('UNAUTHENTICATED', 'What you showed has expired. Authenticate again.');
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
