import type { ServerResponse } from 'node:http';
import type { Answer } from '../subscriptions/answer.ts';
import type { Sink, Subscription } from '../subscriptions/subscription.ts';

const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'content-encoding': 'none',
};
const comment = ':\n\n';

// Answers of queries and mutations are kept until the client reads them; as many as one waits for at a time.
const mostOwed = 100;

/** One connection for many operations: reserved for somebody, then opened, once. Ended, it ends its operations. */
export class OperationStream {
  /** Who reserved it, and alone may use it. */
  readonly owner: string;
  readonly #operations = new Map<string, StreamedOperation>();
  /** Those that wait until the client has read, or has come. */
  #waiting = new Set<StreamedOperation>();
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
    // Some browsers tell nobody of a response before something has come.
    res.write(comment);
    res.on('drain', () => this.#wake());
    this.#wake();
  }

  /** Undefined where one of that id runs, or the stream has ended. */
  begin(id: string): StreamedOperation | undefined {
    if (this.#isOver || this.#operations.has(id)) return undefined;
    const operation = new StreamedOperation(this, id);
    this.#operations.set(id, operation);
    return operation;
  }

  /** Ends an operation, if it runs, and tells nothing more of it. */
  stop(id: string): void {
    this.#operations.get(id)?.leave();
  }

  end(): void {
    this.#isOver = true;
    for (const operation of [...this.#operations.values()]) operation.leave();
    this.#res?.end();
  }

  sayNothing(): void {
    if (this.#res && !this.#res.writableNeedDrain) this.#res.write(comment);
  }

  /** Whether one more answer may be kept until it is read. */
  get mayOwe(): boolean {
    let owed = 0;
    for (const operation of this.#operations.values()) if (operation.isOwed) owed++;
    return owed < mostOwed;
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
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const operation of waiting) operation.wake();
  }
}

/** One operation on such a stream: a subscription, or one answer. Over, it sends nothing more. */
export class StreamedOperation implements Sink {
  readonly id: string;
  readonly #stream: OperationStream;
  readonly #idJson: string;
  #subscription: Subscription | undefined;
  #answer: Answer | undefined;
  #isOver = false;
  isOwed = false;

  constructor(stream: OperationStream, id: string) {
    this.#stream = stream;
    this.id = id;
    this.#idJson = JSON.stringify(id); // without line ends, which would end the event
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Promises one answer. False where the client has to read others first. */
  owe(): boolean {
    if (!this.#stream.mayOwe) return false;
    this.isOwed = true;
    return true;
  }

  /** The one answer of an operation that is no subscription. */
  answer(answer: Answer): void {
    if (this.#isOver) return;
    this.#answer = answer;
    this.wake();
  }

  serve(subscription: Subscription): void {
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

  /** Its client has no more use for it. */
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
