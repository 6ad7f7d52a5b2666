import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { RefoldError } from '../../errors.ts';

export type FindKey = ReturnType<typeof createLocalJWKSet>;

/** The keys as last fetched. */
export interface KeySet {
  readonly find: FindKey;
  /** Changes with each change of the keys. */
  readonly generation: number;
}

/** A key set that a server publishes, kept up to date. */
export interface PublishedKeys {
  /** Returns usable keys. Waits for the server only if no keys are known, or if they are too old. */
  current(): Promise<KeySet>;
  /** Fetches the keys again and returns them, for a token with an unknown key. */
  next(): Promise<KeySet>;
  /** Why the last fetch failed; undefined if it succeeded. */
  problem(): string | undefined;
}

export interface PublishedKeysOptions {
  /** Age at which keys are fetched again, in seconds. */
  readonly refreshSeconds: number;
  /** Age at which keys are no longer used, in seconds. */
  readonly maxAgeSeconds: number;
  /** A clock in milliseconds. @default performance.now */
  readonly now?: () => number;
}

// Long enough for a key server that is up, and short enough for a client that waits.
const fetchTimeoutMs = 5000;
// Tokens with invented key ids must not make every process call the key server all the time.
const leastBetweenMs = 2000;

export function createPublishedKeys(url: URL, options: PublishedKeysOptions): PublishedKeys {
  const { now = () => performance.now() } = options;
  const refreshMs = options.refreshSeconds * 1000;
  const maxAgeMs = options.maxAgeSeconds * 1000;
  let keys: (KeySet & { readonly text: string; readonly fetchedAt: number }) | undefined;
  let fetching: Promise<void> | undefined;
  let lastStart = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;
  let following: Promise<void> | undefined;

  async function fetchKeys(): Promise<void> {
    lastStart = now();
    const startedAt = lastStart;
    try {
      const fetched = await readKeys(url);
      const text = JSON.stringify(fetched);
      const generation = keys?.text === text ? keys.generation : (keys?.generation ?? 0) + 1;
      const find = keys?.text === text ? keys.find : createLocalJWKSet(fetched);
      keys = { find, generation, text, fetchedAt: startedAt };
      problem = undefined;
    } catch (error) {
      problem = `The keys at ${url.href} can't be used: ${reasonOf(error)}`;
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
    throw new RefoldError(
      'AUTHENTICATION_UNAVAILABLE',
      `${problem ?? `The keys at ${url.href} were not fetched.`} Tokens can't be checked until they are.`,
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
      return usable();
    },
    problem: () => problem,
  };
}

async function readKeys(url: URL): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'error', // a redirect could lead to an attacker's keys
    signal: AbortSignal.timeout(fetchTimeoutMs),
  });
  if (response.status !== 200) throw new Error(`expected status 200, found ${response.status}.`);
  const body: unknown = await response.json().catch(() => undefined);
  if (!isKeySet(body)) throw new Error('expected a JSON Web Key Set, { "keys": [ … ] }, found something else.');
  return body;
}

function isKeySet(body: unknown): body is JSONWebKeySet {
  if (typeof body !== 'object' || body === null || !('keys' in body) || !Array.isArray(body.keys)) return false;
  return body.keys.every((key) => typeof key === 'object' && key !== null && typeof key.kty === 'string');
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${fetchTimeoutMs} ms.`;
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
