import { createLocalJWKSet, errors, type JSONWebKeySet, type JWK } from 'jose';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';

export type FindKey = ReturnType<typeof createLocalJWKSet>;

/** The keys as last fetched. */
export interface KeySet {
  readonly find: FindKey;
  /** Changes with each change of the keys. */
  readonly generation: number;
  /** The ids of published keys that can't be used, for example because a part is missing. */
  readonly unusable: ReadonlySet<string | undefined>;
}

/** A key set that a server publishes, kept up to date. */
export interface PublishedKeys {
  /** Returns usable keys. Waits for the server only if no keys are known, or if they are too old. */
  current(): Promise<KeySet>;
  /**
   * Fetches the keys again and returns them, for a token with an unknown key.
   *
   * @throws RefoldError `AUTHENTICATION_UNAVAILABLE` if the fetch fails: the key may have just been published
   */
  next(): Promise<KeySet>;
  /** Why the last fetch failed, or why some keys can't be used; undefined if all is well. */
  problem(): string | undefined;
}

export interface PublishedKeysOptions {
  /** Age at which keys are fetched again, in seconds. */
  readonly refreshSeconds: number;
  /** Age at which keys are no longer used, in seconds. */
  readonly maxAgeSeconds: number;
  /** Time limit of a fetch, in seconds. */
  readonly timeoutSeconds: number;
  /** A clock in milliseconds. @default performance.now */
  readonly now?: () => number;
}

// Tokens with invented key ids must not make every process call the key server all the time.
const leastBetweenMs = 2000;

export function createPublishedKeys(url: URL, options: PublishedKeysOptions): PublishedKeys {
  const { now = () => performance.now() } = options;
  const refreshMs = options.refreshSeconds * 1000;
  const maxAgeMs = options.maxAgeSeconds * 1000;
  let keys: FetchedKeys | undefined;
  let fetching: Promise<void> | undefined;
  let lastStart = Number.NEGATIVE_INFINITY;
  let failure: string | undefined;
  let following: Promise<void> | undefined;

  async function fetchKeys(): Promise<void> {
    lastStart = now();
    const startedAt = lastStart;
    try {
      const fetched = await readKeys(url, options.timeoutSeconds * 1000);
      const text = JSON.stringify(fetched);
      const known = keys?.text === text ? keys : await usableOf(fetched, url);
      keys = { generation: (keys?.generation ?? 0) + 1, ...known, text, fetchedAt: startedAt };
      failure = undefined;
    } catch (error) {
      failure = `The keys at ${url.href} can't be used: ${keysReason(error)}`;
    }
  }

  /** Only one fetch runs at a time; all callers share it. */
  function refresh(): Promise<void> {
    fetching ??= fetchKeys().finally(() => {
      fetching = undefined;
    });
    return fetching;
  }

  function usable(): KeySet {
    if (keys && now() - keys.fetchedAt < maxAgeMs) return keys;
    throw unavailable(
      `${failure ?? `The keys at ${url.href} were not fetched.`} Tokens can't be checked until they are.`,
    );
  }

  return {
    async current() {
      const age = keys ? now() - keys.fetchedAt : Number.POSITIVE_INFINITY;
      if (age < refreshMs) return usable();
      const mayAsk = fetching !== undefined || now() - lastStart >= leastBetweenMs;
      if (mayAsk) {
        const asked = refresh();
        // Keys that have just passed their refresh age are used while the next ones are fetched. Much older keys are not.
        if (age >= 2 * refreshMs) await asked;
      }
      return usable();
    },
    async next() {
      // A running fetch may have been answered before the key was published, so wait for one that starts later.
      following ??= (async () => {
        await fetching;
        const wait = lastStart + leastBetweenMs - now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        following = undefined;
        await refresh();
      })();
      await following;
      if (failure !== undefined) throw unavailable(failure);
      return usable();
    },
    problem: () => failure ?? keys?.problem,
  };
}

export function unavailable(problem: string): RefoldError<'AUTHENTICATION_UNAVAILABLE'> {
  return new RefoldError('AUTHENTICATION_UNAVAILABLE', problem);
}

interface FetchedKeys extends KeySet {
  readonly problem: string | undefined;
  readonly text: string;
  readonly fetchedAt: number;
}

/** Omits keys that can't be used: jose throws for each of their tokens. */
async function usableOf(
  { keys }: JSONWebKeySet,
  url: URL,
): Promise<Pick<FetchedKeys, 'find' | 'unusable' | 'problem'>> {
  const faults = await Promise.all(keys.map(faultOf));
  const broken = keys.flatMap(({ kid }, n) => (faults[n] === undefined ? [] : { kid, fault: faults[n] }));
  const named = broken.map(({ kid, fault }) => `${kid === undefined ? 'one without an id' : `'${kid}'`} (${fault})`);
  const problem = `Some keys at ${url.href} can't be used: ${named.join(', ')}. Operations with their tokens are refused.`;
  return {
    find: createLocalJWKSet({ keys: keys.filter((_, n) => faults[n] === undefined) }),
    unusable: new Set(broken.map(({ kid }) => kid)),
    problem: broken.length === 0 ? undefined : problem,
  };
}

// For a key without an algorithm, jose only looks at its type and curve.
const usualAlgorithms = ['RS256', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/** Why jose can't use a key; undefined also for a key that verifies no tokens, such as one for encryption. */
async function faultOf(key: JWK): Promise<string | undefined> {
  const find = createLocalJWKSet({ keys: [key] });
  for (const alg of key.alg === undefined ? usualAlgorithms : [key.alg]) {
    try {
      await find({ alg, ...(key.kid === undefined ? {} : { kid: key.kid }) });
    } catch (error) {
      const isUnused = error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JOSENotSupported;
      if (!isUnused) return keysReason(error);
    }
  }
  return undefined;
}

async function readKeys(url: URL, timeoutMs: number): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'error', // a redirect could lead to an attacker's keys
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status !== 200) throw new Error(`expected status 200, found ${response.status}.`);
  const body: unknown = await response.json().catch((error: unknown) => {
    if (!(error instanceof SyntaxError)) throw error; // the body stopped in the middle
  });
  if (!isKeySet(body)) throw new Error('expected a JSON Web Key Set, { "keys": [ … ] }, found something else.');
  return body;
}

function isKeySet(body: unknown): body is JSONWebKeySet {
  if (typeof body !== 'object' || body === null || !('keys' in body) || !Array.isArray(body.keys)) return false;
  return body.keys.every((key) => typeof key === 'object' && key !== null && typeof key.kty === 'string');
}

function keysReason(error: unknown): string {
  if (!(error instanceof Error)) return reasonOf(error);
  if (error.name === 'TimeoutError') return 'it took too long to answer.';
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
