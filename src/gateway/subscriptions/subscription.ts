import type { HeldRows } from '../../schema/contract/held-rows.ts';
import type { LiveMessages } from '../../schema/contract/live-messages.ts';
import { isTracing, recordedTrace, type Trace } from '../../tracing.ts';
import { withHeldRows } from '../operations/held-answer.ts';
import { type Answer, createAnswer } from './answer.ts';
import type { Responses, SharedOperation } from './shared-operation.ts';

/** Counts what subscriptions send. */
export interface SentMessages {
  /** Messages that were sent. */
  delivered: number;
  /** Messages that became part of a later one, because the client had not taken them yet. */
  coalesced: number;
}

/** The connection that receives the answers of one subscription. The client reads from it at its own pace. */
export interface Sink {
  /** Whether it can take an answer now. It wakes the subscription when it can again. */
  readonly isReady: boolean;
  send(answer: Answer): void;
  /** Called once, after the last answer; not called if the client has left. */
  complete(): void;
}

export interface SubscriptionOptions {
  readonly messages: LiveMessages<unknown>;
  readonly operation: SharedOperation;
  /** The subscriber's own context, for resolvers that read it. */
  readonly context: object;
  /** Said with the next answer, then forgotten. */
  readonly held?: HeldRows | undefined;
  readonly answers: Responses;
  readonly counts: SentMessages;
  /** Schedules a call of {@link ClientSubscription.deliver}. */
  enqueue(subscription: ClientSubscription): void;
  /** Called once, whatever ends the subscription. */
  onEnd(subscription: ClientSubscription): void;
}

/**
 * One subscription of one client. It buffers no answers: each is computed from the newest state when the client's connection can take it.
 * So a slow client costs no memory and delays nobody. It is a class because there may be many thousands.
 */
export class ClientSubscription {
  readonly #options: SubscriptionOptions;
  #sink: Sink | undefined;
  /** An answer of asynchronous resolvers, or the last answer. */
  #arrived: Answer | undefined;
  #state: 'open' | 'ended' | 'completed' = 'open';
  #isExecuting = false;
  /** A message has arrived that was not taken yet. */
  #isWaiting = false;
  /** What has caused the newest message, if it is recorded. */
  #trace: Trace | undefined;
  /** Used by the delivery queue. */
  isQueued = false;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  /** Starts to send. */
  serve(sink: Sink): void {
    this.#sink = sink;
    if (this.#state === 'open') this.#options.messages.listen(() => this.#arrive());
    this.wake();
  }

  #arrive(): void {
    const { messages, counts } = this.#options;
    if (this.#isWaiting && !messages.ended) counts.coalesced++;
    this.#isWaiting = true;
    this.wake();
  }

  /** Called when the sink is ready again, or when a message has arrived. */
  wake(): void {
    if (isTracing) this.#trace = recordedTrace() ?? this.#trace;
    if (this.#sink && this.#state !== 'completed') this.#options.enqueue(this);
  }

  /** Ends the subscription if it is open, optionally with a last answer. */
  end(lastAnswer?: Answer): void {
    if (this.#state !== 'open') return;
    this.#over();
    this.#arrived = lastAnswer;
    this.#isExecuting = false;
    void this.#options.messages.return();
    this.wake();
  }

  /** Called when the client has left: nothing more is sent. */
  leave(): void {
    const was = this.#state;
    this.#state = 'completed';
    this.#arrived = undefined;
    if (was === 'open') {
      this.#options.onEnd(this);
      void this.#options.messages.return();
    }
  }

  /** Sends what is available, as long as the sink takes it. */
  deliver(): void {
    const sink = this.#sink;
    if (!sink) return;
    while (this.#state !== 'completed' && sink.isReady) {
      const answer = this.#next();
      if (!answer) break;
      sink.send(this.#withHeld(answer));
      this.#options.counts.delivered++;
    }
    if (this.#state === 'ended' && !this.#arrived && sink.isReady) {
      this.#state = 'completed';
      sink.complete();
    }
  }

  #next(): Answer | undefined {
    const arrived = this.#arrived;
    this.#arrived = undefined;
    if (arrived || this.#state !== 'open' || this.#isExecuting) return arrived;
    const { messages, answers, operation, context } = this.#options;
    try {
      const event = messages.take();
      this.#isWaiting = false;
      if (event !== undefined) {
        const trace = this.#trace;
        this.#trace = undefined;
        return this.#made(answers.answer(operation, event, context, trace));
      }
      if (messages.ended) this.#over();
      return undefined;
    } catch (error) {
      this.#over();
      return answers.failed(error);
    }
  }

  #withHeld(answer: Answer): Answer {
    const { held } = this.#options;
    if (!held || held.found.length === 0) return answer;
    const result = withHeldRows(answer.result, held);
    held.found.length = 0;
    return createAnswer(result, answer.eventId);
  }

  #made(answer: Answer | Promise<Answer>): Answer | undefined {
    if (!(answer instanceof Promise)) return answer;
    this.#isExecuting = true;
    void answer.then((made) => {
      if (this.#state !== 'open') return;
      this.#isExecuting = false;
      this.#arrived = made;
      this.wake();
    });
    return undefined;
  }

  #over(): void {
    this.#state = 'ended';
    this.#options.onEnd(this);
  }
}
