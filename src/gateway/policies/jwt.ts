import {
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { type Authenticator, anonymous, type Credentials, type Viewer } from '../../access.ts';
import { RefoldError } from '../../errors.ts';
import { createPublishedKeys, type KeySet, unavailable } from './published-keys.ts';

export interface JwtOptions {
  /**
   * The URL of the published keys, such as `https://login.example.com/.well-known/jwks.json`; or the key set itself; or a shared secret of
   * at least 32 bytes. A URL starts with `https:`; `http:` is only for servers on the same machine.
   */
  readonly keys: URL | JSONWebKeySet | string;
  /** Published keys are fetched again at this age, in seconds. A revoked key may be accepted for that long. @default 300 */
  readonly keysRefreshSeconds?: number;
  /**
   * If published keys cannot be fetched again, they are used up to this age, in seconds. After that, every operation with a token is
   * refused with status 503. @default 3600
   */
  readonly keysMaxAgeSeconds?: number;
  /** Time limit of a fetch of published keys, in seconds. Operations wait that long for a key that is not known. @default 5 */
  readonly keysTimeoutSeconds?: number;
  /** The required `iss` of tokens. */
  readonly issuer: string | readonly string[];
  /** The required `aud` of tokens; one of these. */
  readonly audience: string | readonly string[];
  /**
   * The accepted signature algorithms.
   * @default `['HS256']` with a shared secret, else `['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']`
   */
  readonly algorithms?: readonly string[];
  /** Allowed clock difference in seconds: a token is accepted that long after its `exp` and before its `nbf`. @default 5 */
  readonly clockTolerance?: number;
  /** The claim with the viewer's tenant. @default 'tenant' */
  readonly tenantClaim?: string;
  /** The claim with the list of the viewer's roles. @default 'roles' */
  readonly rolesClaim?: string;
}

// A client sends its token with each operation; its signature is verified once.
const rememberedTokens = 10_000;
const longestToken = 16_384;

/**
 * Authenticates by a JSON Web Token (RFC 7519): from the header `authorization: Bearer …`, or for a WebSocket from `authorization` in
 * `connectionParams`. Without a token the viewer is anonymous; an invalid token refuses the operation. The viewer's id is `sub`.
 *
 * @example
 * export default defineConfig({
 * auth: jwt({
 * keys: new URL('https://login.example.com/.well-known/jwks.json'),
 * issuer: 'https://login.example.com/',
 * audience: 'shop',
 * }),
 * …
 * });
 */
export function jwt(options: JwtOptions): Authenticator {
  const { clockTolerance = 5 } = options;
  const shared = typeof options.keys === 'string';
  const keys = keysOf(options);
  const rules: JWTVerifyOptions = {
    issuer: listed(options.issuer),
    audience: listed(options.audience),
    algorithms: [...(options.algorithms ?? (shared ? ['HS256'] : ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']))],
    clockTolerance,
    requiredClaims: ['sub', 'exp'],
  };
  const verified = new LRUCache<string, { readonly viewer: Viewer; readonly generation: number }>({
    max: rememberedTokens,
  });

  const authenticate = async (credentials: Credentials) => {
    const token = tokenOf(credentials);
    if (token === undefined) return null;
    const current = await keys.current();
    const known = verified.get(token);
    if (known?.generation === current.generation && Number(known.viewer.expiresAt) > Date.now()) return known.viewer;
    verified.delete(token);
    const { claims, generation } = await verify(token, current);
    const viewer = viewerFrom(claims, options, clockTolerance);
    verified.set(token, { viewer, generation });
    return viewer;
  };

  /** If the key of a token is unknown, fetches the keys once more: the key may have just been published. */
  async function verify(
    token: string,
    { find, generation }: Keys,
  ): Promise<{ claims: JWTPayload; generation: number }> {
    try {
      return { claims: await claimsOf(token, find, rules), generation };
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !keys.next) throw refusalOf(error);
      const next = await keys.next();
      if (mayBeSignedBy(next.unusable, token)) throw unavailable('The published key of a token is broken.');
      const claims = await claimsOf(token, next.find, rules).catch((later) => Promise.reject(refusalOf(later)));
      return { claims, generation: next.generation };
    }
  }

  return Object.assign(authenticate, { problem: keys.problem });
}

/** A token without a key id may be signed by any of them. */
function mayBeSignedBy(ids: KeySet['unusable'], token: string): boolean {
  const { kid } = decodeProtectedHeader(token);
  return kid === undefined ? ids.size > 0 : ids.has(kid);
}

interface Keys {
  readonly find: JWTVerifyGetKey;
  readonly generation: number;
}

interface KeySource {
  current(): Promise<Keys> | Keys;
  next?(): Promise<KeySet>;
  problem(): string | undefined;
}

function keysOf({
  keys,
  keysRefreshSeconds = 300,
  keysMaxAgeSeconds = 3600,
  keysTimeoutSeconds = 5,
}: JwtOptions): KeySource {
  if (keys instanceof URL) {
    const refreshSeconds = seconds('keysRefreshSeconds', keysRefreshSeconds);
    const maxAgeSeconds = seconds('keysMaxAgeSeconds', keysMaxAgeSeconds);
    const timeoutSeconds = seconds('keysTimeoutSeconds', keysTimeoutSeconds);
    if (maxAgeSeconds < refreshSeconds) throw invalid("'keysMaxAgeSeconds' is not below 'keysRefreshSeconds'.");
    return createPublishedKeys(secureUrl(keys), { refreshSeconds, maxAgeSeconds, timeoutSeconds });
  }
  if (typeof keys !== 'string') return fixed(createLocalJWKSet(keys));
  if (Buffer.byteLength(keys) < 32) throw invalid("a shared secret in 'keys' has at least 32 bytes.");
  const secret = new TextEncoder().encode(keys);
  return fixed(async () => secret as never); // a shared secret is the key for any header; its algorithms are restricted
}

function fixed(find: JWTVerifyGetKey): KeySource {
  const keys = { find, generation: 0 };
  return { current: () => keys, problem: () => undefined };
}

/** Requires https: an attacker who can modify plain HTTP could publish keys of their own. */
function secureUrl(url: URL): URL {
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)) return url;
  throw invalid(`'keys' is at ${url.origin}. Use https: (http: is for servers on the same machine).`);
}

function seconds(name: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw invalid(`'${name}' is a number of seconds above 0, found ${String(value)}.`);
}

function invalid(problem: string): RefoldError {
  return new RefoldError('INVALID_CONFIG', `jwt: ${problem}`);
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
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    return oneOf(error, token, rules);
  }
}

/** Verifies a token without a key id if several keys could have signed it. */
async function oneOf(
  candidates: errors.JWKSMultipleMatchingKeys,
  token: string,
  rules: JWTVerifyOptions,
): Promise<JWTPayload> {
  for await (const key of candidates) {
    try {
      return (await jwtVerify(token, key, rules)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

/** Clients do not learn which key or claim was wrong. */
function refusalOf(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return refused('The token has expired. Authenticate again.', error);
  return error instanceof errors.JOSEError ? refused('The token is not valid here.', error) : error;
}

function viewerFrom(
  claims: JWTPayload,
  { tenantClaim = 'tenant', rolesClaim = 'roles' }: JwtOptions,
  clockTolerance: number,
): Viewer {
  const { sub, exp = 0, [tenantClaim]: tenant, [rolesClaim]: roles } = claims; // exp is required above
  if (typeof sub !== 'string' || sub === '') throw refused('The token is not valid here.');
  return Object.freeze({
    ...anonymous,
    id: sub,
    tenant: typeof tenant === 'string' ? tenant : null,
    roles: Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : [],
    claims,
    expiresAt: new Date((exp + clockTolerance) * 1000),
  });
}

function listed(value: string | readonly string[]): string | string[] {
  return typeof value === 'string' ? value : [...value];
}

function refused(problem: string, cause?: unknown): RefoldError<'UNAUTHENTICATED'> {
  return new RefoldError('UNAUTHENTICATED', problem, {}, { cause });
}
