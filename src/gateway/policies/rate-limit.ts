import { GraphQLError } from 'graphql';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Viewer } from '../../access.ts';
import type { CheckedPolicies } from '../../config/gateway-policies.ts';
import { rateLimitClient } from '../requests/client.ts';
import type { TransportContext } from '../requests/transport-context.ts';

/** Counts an operation. @throws GraphQLError `RATE_LIMITED`, with status 429 and `retry-after` for HTTP */
export type RateLimit = (viewer: Viewer | 'system', transport: TransportContext) => Promise<void>;

export interface RateLimitSetup {
  readonly limit: NonNullable<CheckedPolicies['rateLimit']>;
  /** The number of proxies in front that append the client's address; undefined if unknown. */
  readonly proxies: number | undefined;
  onRefused(): void;
}

/** Counts in memory: the limit applies to each process separately. */
export function createRateLimit({ limit, proxies, onRefused }: RateLimitSetup): RateLimit {
  const limiter = new RateLimiterMemory({ points: limit.operations, duration: limit.seconds });
  return async (viewer, transport) => {
    if (viewer === 'system') return;
    try {
      // A rate limit always applies: if the number of proxies is unknown, it counts by the address of the connection.
      await limiter.consume(rateLimitClient(viewer, transport, proxies ?? 0) ?? 'unknown');
    } catch (exceeded) {
      if (!(exceeded instanceof RateLimiterRes)) throw exceeded;
      onRefused();
      throw tooMany(limit, Math.max(1, Math.ceil(exceeded.msBeforeNext / 1000)));
    }
  };
}

function tooMany({ operations, seconds }: { operations: number; seconds: number }, wait: number): GraphQLError {
  return new GraphQLError(`More than ${operations} operations in ${seconds} s. Try again in ${wait} s.`, {
    extensions: { code: 'RATE_LIMITED', http: { status: 429, headers: { 'retry-after': String(wait) } } },
  });
}
