import { GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { endingStream } from './ending-stream.ts';

/** The subscriptions that a process serves. */
export interface Subscriptions {
  readonly plugin: Plugin;
  count(): number;
  /** Ends all of them; their clients are told that they are complete. */
  endAll(): void;
}

export function createSubscriptions(max: number): Subscriptions {
  const running = new Set<{ end(): void }>();
  let starting = 0;
  return {
    plugin: {
      onSubscribe({ subscribeFn, setSubscribeFn }) {
        setSubscribeFn(async (args) => {
          if (running.size + starting >= max) return { errors: [tooMany(max)] };
          starting++;
          try {
            const result: unknown = await subscribeFn(args);
            if (!isAsyncIterable(result)) return result;
            const subscription = endingStream(result, { onEnd: () => running.delete(subscription) });
            running.add(subscription);
            return subscription.stream;
          } finally {
            starting--;
          }
        });
      },
    },
    count: () => running.size,
    endAll() {
      for (const subscription of [...running]) subscription.end();
    },
  };
}

function tooMany(max: number): GraphQLError {
  return new GraphQLError(`This process serves ${max} subscriptions already. Try again later.`, {
    extensions: { code: 'RATE_LIMITED', http: { status: 503 } },
  });
}
