import { GraphQLError } from 'graphql';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Viewer } from '../access.ts';
import type { CheckedPolicies } from '../config/gateway-policies.ts';
import type { TransportContext } from './transport-context.ts';

/** Counts an operation. @throws GraphQLError `RATE_LIMITED`, with status 429 and `retry-after` for HTTP */
export type RateLimit = (viewer: Viewer | 'system', transport: TransportContext) => Promise<void>;

/** Counts in memory: each process allows as much. */
export function createRateLimit(limit: NonNullable<CheckedPolicies['rateLimit']>): RateLimit {
  const limiter = new RateLimiterMemory({ points: limit.operations, duration: limit.seconds });
  return async (viewer, transport) => {
    if (viewer === 'system') return;
    const client = viewer.id === null ? `address ${addressOf(transport, limit.proxies)}` : `viewer ${viewer.id}`;
    try {
      await limiter.consume(client);
    } catch (exceeded) {
      if (!(exceeded instanceof RateLimiterRes)) throw exceeded;
      throw tooMany(limit, Math.max(1, Math.ceil(exceeded.msBeforeNext / 1000)));
    }
  };
}

/** Of the client as the outermost trusted proxy saw it: what clients write into the header themselves stands before that. */
export function addressOf(transport: TransportContext, proxies: number): string {
  const direct = (transport.req ?? transport.socketRequest)?.socket?.remoteAddress ?? 'unknown';
  if (proxies === 0) return direct;
  const header = transport.request?.headers.get('x-forwarded-for') ?? transport.socketHeaders?.['x-forwarded-for'];
  const seen = typeof header === 'string' ? header.split(',').map((address) => address.trim()) : [];
  return seen.at(-proxies) ?? direct;
}

function tooMany({ operations, seconds }: { operations: number; seconds: number }, wait: number): GraphQLError {
  return new GraphQLError(`More than ${operations} operations in ${seconds} s. Try again in ${wait} s.`, {
    extensions: { code: 'RATE_LIMITED', http: { status: 429, headers: { 'retry-after': String(wait) } } },
  });
}
