import type { LiveMessages } from '../../schema/contract/live-messages.ts';
import type { Answer } from './answer.ts';
import type { Answers, SharedOperation } from './shared-operation.ts';

/** Where the answers of one subscription go: a connection that a client reads from at its own pace. */
export interface Sink {
  /** Whether it takes an answer now. When it does again, it wakes the subscription. */
  readonly isReady: boolean;
  send(answer: Answer): void;
  /** Called once, after the last answer; not where the client has left. */
  complete(): void;
}

export interface SubscriptionOptions {
  readonly messages: LiveMessages<unknown>;
  readonly operation: SharedOperation;
  /** The subscriber's own, for resolvers that look at it. */
  readonly context: object;
  readonly answers: Answers;
  /** Has {@link Subscription.deliver} called soon. */
  enqueue(subscription: Subscription): void;
  /** Called once, whoever ends it. */
  onEnd(subscription: Subscription): void;
}

/**
 * One subscription of one client. It keeps no answers: each is made when the client's connection takes it, of the newest state, so that a
 * slow client costs no memory and holds up nobody. A class, since there are many thousand.
 */
export class Subscription {
  readonly #options: SubscriptionOptions;
  #sink: Sink | undefined;
  /** Made by resolvers that took their time, or the last word. */
  #arrived: Answer | undefined;
  #state: 'open' | 'ended' | 'completed' = 'open';
  #isExecuting = false;
  /** Of the queue of deliveries. */
  isQueued = false;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  /** Begins to send. */
  serve(sink: Sink): void {
    this.#sink = sink;
    if (this.#state === 'open') this.#options.messages.listen(() => this.wake());
    this.wake();
  }

  /** Something has come, or the sink is ready again. */
  wake(): void {
    if (this.#sink && this.#state !== 'completed') this.#options.enqueue(this);
  }

  /** Ends it, where it is not over, with a last answer, if one is given. */
  end(lastWord?: Answer): void {
    if (this.#state !== 'open') return;
    this.#over();
    this.#arrived = lastWord;
    this.#isExecuting = false;
    void this.#options.messages.return();
    this.wake();
  }

  /** Its client has left: nothing more is sent. */
  leave(): void {
    const was = this.#state;
    this.#state = 'completed';
    this.#arrived = undefined;
    if (was === 'open') {
      this.#options.onEnd(this);
      void this.#options.messages.return();
    }
  }

  /** Sends what there is, as far as the sink takes it. */
  deliver(): void {
    const sink = this.#sink;
    if (!sink) return;
    while (this.#state !== 'completed' && sink.isReady) {
      const answer = this.#next();
      if (answer) sink.send(answer);
      else break;
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
      if (event !== undefined) return this.#made(answers.answer(operation, event, context));
      if (messages.ended) this.#over();
      return undefined;
    } catch (error) {
      this.#over();
      return answers.failed(error);
    }
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
