import { createSourceEventStream, type ExecutionResult, GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { liveMessages } from '../schema/live-messages.ts';
import { expired } from './authentication.ts';
import { createDeliveries } from './deliveries.ts';
import type { OperationScope } from './operation-scope.ts';
import { pulled } from './pulled-answers.ts';
import { createAnswers, createSharedOperations, type OperationArgs } from './shared-operation.ts';
import { Subscription } from './subscription.ts';

export interface SubscriptionsOptions {
  readonly scope: OperationScope;
  readonly maskError: (error: unknown) => GraphQLError;
  /** How many may be open at a time. */
  readonly max: number;
}

export interface SubscriptionArgs extends OperationArgs {
  /** As the transport and the pipeline made it. */
  readonly contextValue: object;
}

export interface Refusal {
  readonly errors: readonly GraphQLError[];
}

/** The subscriptions that a process serves. */
export interface Subscriptions {
  /** Opens one; it sends nothing before it is served. Errors, masked, where it is refused. */
  open(args: SubscriptionArgs): Promise<Subscription | Refusal>;
  /** Opens those that come by yoga's own ways. */
  readonly plugin: Plugin;
  count(): number;
  /** Ends all of them, and refuses others; their clients are told that they are complete. */
  endAll(): void;
}

export function createSubscriptions({ scope, maskError, max }: SubscriptionsOptions): Subscriptions {
  const running = new Set<Subscription>();
  const operations = createSharedOperations();
  const answers = createAnswers(maskError);
  const deliveries = createDeliveries(answers.forget);
  let starting = 0;
  let isClosed = false;

  async function open(args: SubscriptionArgs): Promise<Subscription | Refusal> {
    if (isClosed || running.size + starting >= max) return { errors: [tooMany(max)] };
    starting++;
    try {
      return await begin(args);
    } catch (error) {
      return { errors: [maskError(error)] };
    } finally {
      starting--;
    }
  }

  async function begin(args: SubscriptionArgs): Promise<Subscription | Refusal> {
    const { context, expiresAt, close } = await scope.open(args);
    let source: AsyncIterable<unknown> | ExecutionResult | undefined;
    try {
      source = await createSourceEventStream({ ...args, contextValue: context });
    } finally {
      if (!isAsyncIterable(source)) close();
    }
    if (!isAsyncIterable(source)) return { errors: (source.errors ?? []).map(maskError) };
    const operation = operations.join(args);
    let stopClock = () => {};
    const subscription = new Subscription({
      messages: liveMessages(source),
      operation,
      context,
      answers,
      enqueue: deliveries.add,
      onEnd() {
        running.delete(subscription);
        operations.leave(operation);
        stopClock();
        close();
      },
    });
    running.add(subscription);
    if (expiresAt) stopClock = atTime(expiresAt, () => subscription.end(answers.failed(expired())));
    if (isClosed) subscription.end();
    return subscription;
  }

  return {
    open,
    plugin: {
      onSubscribe({ setSubscribeFn }) {
        setSubscribeFn(async (args) => {
          const opened = await open({ ...args, contextValue: args.contextValue as object }); // made by the pipeline
          return opened instanceof Subscription ? pulled(opened) : opened;
        });
      },
    },
    count: () => running.size,
    endAll() {
      isClosed = true;
      for (const subscription of [...running]) subscription.end();
    },
  };
}

function tooMany(max: number): GraphQLError {
  return new GraphQLError(`This process serves ${max} subscriptions already. Try again later.`, {
    extensions: { code: 'RATE_LIMITED', http: { status: 503 } },
  });
}

// A timer's delay is a number of 32 bits; what is further away is looked at again then.
const longestDelay = 2 ** 31 - 1;

/** Calls at a time, unless it is stopped before. */
function atTime(time: Date, call: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = () => {
    const left = time.getTime() - Date.now();
    timer = setTimeout(left > longestDelay ? wait : call, Math.max(0, Math.min(left, longestDelay)));
  };
  wait();
  return () => clearTimeout(timer);
}
