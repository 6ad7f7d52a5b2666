import type { ServerResponse } from 'node:http';
import type { Answer } from '../subscriptions/answer.ts';
import type { ClientSubscription, Sink } from '../subscriptions/subscription.ts';

const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'content-encoding': 'none',
};
const comment = ':\n\n';

// The results of queries and mutations are kept until the client reads them. The limit is the number that a client may reasonably wait for
// at a time.
const maxPending = 100;

/** One connection for many operations. It is reserved by a viewer, then opened once. When it ends, its operations end. */
export class OperationStream {
  /** The viewer who reserved it; nobody else may use it. */
  readonly owner: string;
  readonly #operations = new Map<string, StreamedOperation>();
  /** Operations that wait for the client to read, or to open the stream. */
  #waiting = new Set<StreamedOperation>();
  #onAnswered: (() => void)[] = [];
  #res: ServerResponse | undefined;
  #isOver = false;

  constructor(owner: string) {
    this.owner = owner;
  }

  get isOpen(): boolean {
    return this.#res !== undefined;
  }

  open(res: ServerResponse): void {
    this.#res = res;
    res.writeHead(200, streamHeaders);
    // Some browsers report a response to the page only after its first byte.
    res.write(comment);
    res.on('drain', () => this.#wake());
    this.#wake();
  }

  /** Returns undefined if an operation with that id is running, or if the stream has ended. */
  begin(id: string): StreamedOperation | undefined {
    if (this.#isOver || this.#operations.has(id)) return undefined;
    const operation = new StreamedOperation(this, id);
    this.#operations.set(id, operation);
    return operation;
  }

  /** Ends an operation if it is running, and sends nothing more of it. */
  stop(id: string): void {
    this.#operations.get(id)?.leave();
  }

  end(): void {
    this.#isOver = true;
    for (const operation of [...this.#operations.values()]) operation.leave();
    this.#res?.end();
  }

  /** Resolves when every operation is answered. */
  async answered(): Promise<void> {
    if (this.#pending > 0) await new Promise<void>((resolve) => this.#onAnswered.push(resolve));
  }

  /** Answers the operations that have no answer yet. */
  answerPending(answerTo: (isMutation: boolean) => Answer): void {
    for (const operation of [...this.#operations.values()]) operation.answerIfPending(answerTo);
  }

  sayNothing(): void {
    if (this.#res && !this.#res.writableNeedDrain) this.#res.write(comment);
  }

  /** Whether one more result may be kept until the client reads it. */
  get mayKeepResult(): boolean {
    return this.#pending < maxPending;
  }

  get #pending(): number {
    let pending = 0;
    for (const operation of this.#operations.values()) if (operation.isPending) pending++;
    return pending;
  }

  isReadyFor(operation: StreamedOperation): boolean {
    if (this.#isOver) return false;
    if (this.#res && !this.#res.writableNeedDrain) return true;
    this.#waiting.add(operation);
    return false;
  }

  write(event: Buffer): void {
    this.#res?.write(event);
  }

  forget(operation: StreamedOperation): void {
    this.#operations.delete(operation.id);
    this.#waiting.delete(operation);
    if (this.#pending > 0) return;
    for (const resolve of this.#onAnswered) resolve();
    this.#onAnswered = [];
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const operation of waiting) operation.wake();
  }
}

/** One operation on such a stream: a subscription, or a single result. It sends nothing after it is over. */
export class StreamedOperation implements Sink {
  readonly id: string;
  readonly #stream: OperationStream;
  readonly #idJson: string;
  #subscription: ClientSubscription | undefined;
  #answer: Answer | undefined;
  #isOver = false;
  #isMutation = false;
  isPending = false;

  constructor(stream: OperationStream, id: string) {
    this.#stream = stream;
    this.id = id;
    this.#idJson = JSON.stringify(id); // without line breaks, which would end the event
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Reserves a place for one result. Returns false if the client has to read others first. */
  owe({ isMutation }: { readonly isMutation: boolean }): boolean {
    if (!this.#stream.mayKeepResult) return false;
    this.isPending = true;
    this.#isMutation = isMutation;
    return true;
  }

  /** Sends the single result of a query or mutation. */
  answer(answer: Answer): void {
    if (this.#isOver) return;
    this.#answer = answer;
    this.wake();
  }

  /** Also where the client does not read: it may still, before the stream ends. */
  answerIfPending(answerTo: (isMutation: boolean) => Answer): void {
    if (!this.isPending) return;
    this.send(this.#answer ?? answerTo(this.#isMutation));
    this.complete();
  }

  serve(subscription: ClientSubscription): void {
    if (this.#isOver) return void subscription.leave();
    this.#subscription = subscription;
    subscription.serve(this);
  }

  get isReady(): boolean {
    return !this.#isOver && this.#stream.isReadyFor(this);
  }

  wake(): void {
    if (this.#subscription) return void this.#subscription.wake();
    if (!this.#answer || !this.isReady) return;
    this.send(this.#answer);
    this.complete();
  }

  send({ json }: Answer): void {
    const head = `event: next\ndata: {"id":${this.#idJson},"payload":`;
    this.#stream.write(Buffer.concat([Buffer.from(head), json, tail]));
  }

  complete(): void {
    this.#stream.write(Buffer.from(`event: complete\ndata: {"id":${this.#idJson}}\n\n`));
    this.#end();
  }

  /** Called when the client does not need it any more. */
  leave(): void {
    this.#end();
    this.#subscription?.leave();
  }

  #end(): void {
    this.#isOver = true;
    this.#answer = undefined;
    this.#stream.forget(this);
  }
}

const tail = Buffer.from('}\n\n');
