import { GraphQLError } from 'graphql';
import type { CheckedGateway } from '../../config/gateway-options.ts';

export interface ConcurrencyLimitOptions {
  /** What is limited. */
  readonly things: 'sockets' | 'subscriptions';
  readonly max: number;
  readonly maxPerClient: number;
  onRefused(limit: string): void;
}

/** Limits the number of open connections or subscriptions, per process and per client. */
export interface ConcurrencyLimit {
  /**
   * Counts one more for a client; the returned function releases it. `client` is undefined if it cannot be distinguished from others.
   *
   * @throws GraphQLError `RATE_LIMITED`, with status 503 if the limit of the process is reached, and 429 if that of the client is
   */
  open(client: string | undefined): () => void;
  count(): number;
}

/** The limits of one gateway. */
export function createGatewayLimits(
  options: Pick<
    CheckedGateway,
    'maxSockets' | 'maxSocketsPerClient' | 'maxSubscriptions' | 'maxSubscriptionsPerClient'
  >,
  onRefused: (limit: string) => void,
): { readonly sockets: ConcurrencyLimit; readonly subscriptions: ConcurrencyLimit } {
  const { maxSockets, maxSocketsPerClient, maxSubscriptions, maxSubscriptionsPerClient } = options;
  return {
    sockets: createConcurrencyLimit({
      things: 'sockets',
      max: maxSockets,
      maxPerClient: maxSocketsPerClient,
      onRefused,
    }),
    subscriptions: createConcurrencyLimit({
      things: 'subscriptions',
      max: maxSubscriptions,
      maxPerClient: maxSubscriptionsPerClient,
      onRefused,
    }),
  };
}

export function createConcurrencyLimit(options: ConcurrencyLimitOptions): ConcurrencyLimit {
  const { things, max, maxPerClient, onRefused } = options;
  const byClient = new Map<string, number>();
  let total = 0;

  function refuse(limit: string, status: number, message: string): GraphQLError {
    onRefused(limit);
    return new GraphQLError(message, { extensions: { code: 'RATE_LIMITED', http: { status } } });
  }

  return {
    count: () => total,
    open(client) {
      const own = client === undefined ? 0 : (byClient.get(client) ?? 0);
      if (total >= max) throw refuse(things, 503, `This process serves ${max} ${things} already. Try again later.`);
      if (client !== undefined && own >= maxPerClient)
        throw refuse(
          `${things}_per_client`,
          429,
          `At most ${maxPerClient} ${things} of one client may be open at a time. Close one first.`,
        );
      total++;
      if (client !== undefined) byClient.set(client, own + 1);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        total--;
        if (client === undefined) return;
        const left = (byClient.get(client) ?? 1) - 1;
        if (left === 0) byClient.delete(client);
        else byClient.set(client, left);
      };
    },
  };
}
