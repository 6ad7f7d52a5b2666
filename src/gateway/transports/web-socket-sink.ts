import type { Duplex } from 'node:stream';
import type { ExecutionResult } from 'graphql';
import type { WebSocket } from 'ws';
import type { Answer } from '../subscriptions/answer.ts';
import type { ClientSubscription, Sink } from '../subscriptions/subscription.ts';

/** The raw socket of one client, below the WebSocket. A message for many clients is framed here, not by each WebSocket. */
export class SocketWriter {
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  /** Subscriptions that wait for the client to read. */
  #waiting: Set<ClientSubscription> | undefined;

  constructor(webSocket: WebSocket, socket: Duplex) {
    this.#webSocket = webSocket;
    this.#socket = socket;
  }

  /** Whether it can take a message now. When it can again, it wakes the subscription. */
  isReadyFor(subscription: ClientSubscription): boolean {
    if (this.#webSocket.readyState !== this.#webSocket.OPEN) return false;
    if (!this.#socket.writableNeedDrain) return true;
    if (!this.#waiting) {
      this.#waiting = new Set();
      this.#socket.once('drain', () => {
        const waiting = this.#waiting ?? [];
        this.#waiting = undefined;
        for (const one of waiting) one.wake();
      });
    }
    this.#waiting.add(subscription);
    return false;
  }

  send(head: Buffer, { json }: Answer): void {
    const length = head.length + json.length + tail.length;
    if (length <= maxCopied) {
      this.#socket.write(Buffer.concat([frameHeader(length), head, json, tail]));
      return;
    }
    this.#socket.cork();
    for (const part of [frameHeader(length), head, json, tail]) this.#socket.write(part);
    this.#socket.uncork();
  }
}

// Up to a few pages, copying into one buffer is faster than writing four.
const maxCopied = 16_384;
const tail = Buffer.from('}');

/** The header of an unfragmented text frame of this length, as a server sends it (RFC 6455, 5.2). */
function frameHeader(length: number): Buffer {
  const wholeText = 0x81;
  if (length < 126) return Buffer.from([wholeText, length]);
  if (length < 65_536) return Buffer.from([wholeText, 126, length >> 8, length & 255]);
  const header = Buffer.alloc(10);
  header.writeUInt8(wholeText, 0);
  header.writeUInt8(127, 1);
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

const done = { done: true, value: undefined } as const;

/**
 * One subscription on a WebSocket. For the protocol implementation it is an empty stream that ends with the subscription. So the work that
 * the implementation would do for each value and subscriber is done once for each value.
 */
export class WebSocketSink implements Sink, AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #writer: SocketWriter;
  readonly #subscription: ClientSubscription;
  readonly #head: Buffer;
  readonly #end = Promise.withResolvers<typeof done>();
  #isServed = false;

  constructor(writer: SocketWriter, subscription: ClientSubscription, id: string) {
    this.#writer = writer;
    this.#subscription = subscription;
    this.#head = Buffer.from(`{"id":${JSON.stringify(id)},"type":"next","payload":`);
  }

  get isReady(): boolean {
    return this.#writer.isReadyFor(this.#subscription);
  }

  send(answer: Answer): void {
    this.#writer.send(this.#head, answer);
  }

  complete(): void {
    this.#end.resolve(done);
  }

  next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (!this.#isServed) this.#subscription.serve(this);
    this.#isServed = true;
    return this.#end.promise;
  }

  return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.#subscription.leave();
    this.#end.resolve(done);
    return this.#end.promise;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
