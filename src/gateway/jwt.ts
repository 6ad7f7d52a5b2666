import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { type Authenticator, anonymous, type Credentials, type Viewer } from '../access.ts';
import { RefoldError } from '../errors.ts';

export interface JwtOptions {
  /** Where the keys are published, such as `https://login.example.com/.well-known/jwks.json`, or the key set itself, or a shared secret of at least 32 bytes. */
  readonly keys: URL | JSONWebKeySet | string;
  /** The `iss` that tokens must have. */
  readonly issuer: string | readonly string[];
  /** The `aud` that tokens must have, one of them: who a token was made for. */
  readonly audience: string | readonly string[];
  /**
   * The signatures that count.
   * @default `['HS256']` with a shared secret, else `['RS256', 'PS256', 'ES256', 'EdDSA']`
   */
  readonly algorithms?: readonly string[];
  /** By how many seconds clocks may differ. @default 5 */
  readonly clockTolerance?: number;
  /** The claim that names the viewer's tenant. @default 'tenant' */
  readonly tenantClaim?: string;
  /** The claim with the list of the viewer's roles. @default 'roles' */
  readonly rolesClaim?: string;
}

// A client's token comes with each of its operations; its signature is checked once.
const rememberedTokens = 10_000;
const longestToken = 16_384;

/**
 * Authenticates by a JSON Web Token (RFC 7519): the header `authorization: Bearer …`, or for a WebSocket `authorization` in
 * `connectionParams`. Nothing shown is an anonymous viewer; a token that does not count refuses the operation. The viewer's id is `sub`.
 *
 * @example
 * export default defineConfig({
 *   auth: jwt({
 *     keys: new URL('https://login.example.com/.well-known/jwks.json'),
 *     issuer: 'https://login.example.com/',
 *     audience: 'shop',
 *   }),
 *   …
 * });
 */
export function jwt(options: JwtOptions): Authenticator {
  const shared = typeof options.keys === 'string';
  if (shared && Buffer.byteLength(options.keys as string) < 32)
    throw new RefoldError('INVALID_CONFIG', "jwt: a shared secret in 'keys' has at least 32 bytes.");
  const find = keysOf(options.keys);
  const rules: JWTVerifyOptions = {
    issuer: listed(options.issuer),
    audience: listed(options.audience),
    algorithms: [...(options.algorithms ?? (shared ? ['HS256'] : ['RS256', 'PS256', 'ES256', 'EdDSA']))],
    clockTolerance: options.clockTolerance ?? 5,
    requiredClaims: ['sub', 'exp'],
  };
  const verified = new LRUCache<string, Viewer>({ max: rememberedTokens });

  return async (credentials) => {
    const token = tokenOf(credentials);
    if (token === undefined) return null;
    const known = verified.get(token);
    if (known && Number(known.expiresAt) > Date.now()) return known;
    const viewer = viewerFrom(await claimsOf(token, find, rules), options);
    verified.set(token, viewer);
    return viewer;
  };
}

function keysOf(keys: JwtOptions['keys']): JWTVerifyGetKey {
  if (keys instanceof URL) return createRemoteJWKSet(keys);
  if (typeof keys !== 'string') return createLocalJWKSet(keys);
  const secret = new TextEncoder().encode(keys);
  return async () => secret as never; // a shared secret is the key whatever the header says; its algorithms are restricted
}

function tokenOf({ header, connectionParams }: Credentials): string | undefined {
  const shown = connectionParams.authorization ?? connectionParams.Authorization ?? header('authorization');
  if (shown === undefined) return undefined;
  const token = typeof shown === 'string' ? /^Bearer +([\w.+/=-]+)$/i.exec(shown)?.[1] : undefined;
  if (token === undefined || token.length > longestToken) throw refused("Expected 'authorization: Bearer <token>'.");
  return token;
}

async function claimsOf(token: string, find: JWTVerifyGetKey, rules: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, rules)).payload;
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw refused('The token has expired. Authenticate again.', error);
    // Which key or claim was wrong is nobody's business outside; that the keys can't be fetched is no fault of the token.
    const isToken = error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout);
    const isInvalid = isToken && error.code !== 'ERR_JOSE_GENERIC';
    throw isInvalid ? refused('The token does not count here.', error) : error;
  }
}

function viewerFrom(claims: JWTPayload, { tenantClaim = 'tenant', rolesClaim = 'roles' }: JwtOptions): Viewer {
  const { [tenantClaim]: tenant, [rolesClaim]: roles } = claims;
  return Object.freeze({
    ...anonymous,
    id: claims.sub ?? null,
    tenant: typeof tenant === 'string' ? tenant : null,
    roles: Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : [],
    claims,
    expiresAt: new Date((claims.exp ?? 0) * 1000), // required above
  });
}

function listed(value: string | readonly string[]): string | string[] {
  return typeof value === 'string' ? value : [...value];
}

function refused(problem: string, cause?: unknown): RefoldError<'UNAUTHENTICATED'> {
  return new RefoldError('UNAUTHENTICATED', problem, {}, { cause });
}
