import { type ExecutionResult, GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { sourceEventStream } from '../../schema/contract/graphql-release.ts';
import { liveMessages } from '../../schema/contract/live-messages.ts';
import { type OperationObserver, observed } from '../operations/observed-operations.ts';
import type { OperationScope } from '../operations/operation-scope.ts';
import { expired } from '../policies/authentication.ts';
import type { ConcurrencyLimit } from '../policies/concurrency-limit.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import type { ClientOf } from '../requests/client.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { createDeliveries } from './deliveries.ts';
import { pulled } from './pulled-answers.ts';
import { createResponses, createSharedOperations, type OperationArgs } from './shared-operation.ts';
import { ClientSubscription, type SentMessages } from './subscription.ts';

export interface SubscriptionsOptions {
  readonly scope: OperationScope;
  readonly observer: OperationObserver | undefined;
  readonly maskError: (error: unknown) => GraphQLError;
  readonly policies: RequestPolicies;
  /** Limits the number of concurrent subscriptions. */
  readonly limit: ConcurrencyLimit;
  /** Returns the client that a subscription counts for. */
  readonly clientOf: ClientOf;
}

export interface SubscriptionArgs extends OperationArgs {
  /** The context from the transport and the pipeline. */
  readonly contextValue: object;
}

export interface Refusal {
  readonly errors: readonly GraphQLError[];
}

/** The subscriptions of this process. */
export interface Subscriptions {
  /** Opens a subscription. It sends nothing before `serve` is called. Returns masked errors if it is refused. */
  open(args: SubscriptionArgs): Promise<ClientSubscription | Refusal>;
  /** Opens subscriptions that come through yoga itself. */
  readonly plugin: Plugin;
  readonly counts: Readonly<SentMessages>;
  /** Ends all subscriptions and refuses new ones. Responses end without `complete`: clients that get it would not reconnect. */
  endAll(): void;
}

export function createSubscriptions(options: SubscriptionsOptions): Subscriptions {
  const { scope, observer, maskError, policies, limit, clientOf } = options;
  /** Each with the response that yoga writes it to, if it does. */
  const running = new Map<ClientSubscription, TransportContext['res']>();
  const operations = createSharedOperations();
  const answers = createResponses(maskError);
  const deliveries = createDeliveries(answers.forget);
  const counts: SentMessages = { delivered: 0, coalesced: 0 };
  let isClosed = false;

  function open(args: SubscriptionArgs): Promise<ClientSubscription | Refusal> {
    const operation = observed(args.document, args.operationName);
    const begin = () => openObserved(args);
    return observer ? observer.observe(operation, args.contextValue, begin) : begin();
  }

  async function openObserved(args: SubscriptionArgs): Promise<ClientSubscription | Refusal> {
    let leave = () => {};
    try {
      if (isClosed) throw stopping();
      const transport: TransportContext = args.contextValue;
      leave = limit.open(clientOf(await policies.authenticateAndLimit(transport), transport));
      const opened = await begin(args, leave);
      if (!(opened instanceof ClientSubscription)) leave();
      return opened;
    } catch (error) {
      leave();
      return { errors: [maskError(error)] };
    }
  }

  async function begin(args: SubscriptionArgs, leave: () => void): Promise<ClientSubscription | Refusal> {
    const { context, revision, expiresAt, held, close } = await scope.open(args);
    let source: AsyncIterable<unknown> | ExecutionResult | undefined;
    try {
      source = await sourceEventStream({ ...args, contextValue: context });
    } finally {
      if (!isAsyncIterable(source)) close();
    }
    if (!isAsyncIterable(source)) return { errors: (source.errors ?? []).map(maskError) };
    const positions = headerOf(args.contextValue, 'refold-position') === '1';
    const operation = operations.join({ ...args, revision, positions });
    let stopClock = () => {};
    const subscription = new ClientSubscription({
      messages: liveMessages(source),
      operation,
      context,
      held,
      answers,
      counts,
      enqueue: deliveries.add,
      onEnd() {
        running.delete(subscription);
        operations.leave(operation);
        stopClock();
        close();
        leave();
      },
    });
    const { res }: TransportContext = args.contextValue;
    running.set(subscription, res);
    if (expiresAt) stopClock = atTime(expiresAt, () => subscription.end(answers.failed(expired())));
    if (isClosed) goAway(subscription, res);
    return subscription;
  }

  return {
    open,
    counts,
    plugin: {
      onSubscribe({ setSubscribeFn }) {
        setSubscribeFn(async (args) => {
          const opened = await open({ ...args, contextValue: args.contextValue as object }); // created by the pipeline
          return opened instanceof ClientSubscription ? pulled(opened) : opened;
        });
      },
    },
    endAll() {
      isClosed = true;
      for (const [subscription, res] of [...running]) goAway(subscription, res);
    },
  };
}

function goAway(subscription: ClientSubscription, res: TransportContext['res']): void {
  if (!res) return void subscription.end();
  subscription.leave();
  // Yoga may still write a comment, or an answer that was on its way.
  res.on('error', () => {});
  if (!res.headersSent) res.statusCode = 503;
  res.end();
}

export function stopping(): GraphQLError {
  return new GraphQLError('This process is stopping. Try again.', {
    extensions: { code: 'RATE_LIMITED', http: { status: 503 } },
  });
}

// A timer's delay has 32 bits; for a longer time, the timer is set again.
const longestDelay = 2 ** 31 - 1;

/** Calls at the given time, unless it is stopped before. */
function atTime(time: Date, call: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = () => {
    const left = time.getTime() - Date.now();
    timer = setTimeout(left > longestDelay ? wait : call, Math.max(0, Math.min(left, longestDelay)));
  };
  wait();
  return () => clearTimeout(timer);
}
