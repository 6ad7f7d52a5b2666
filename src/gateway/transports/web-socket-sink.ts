import type { Duplex } from 'node:stream';
import type { ExecutionResult } from 'graphql';
import type { WebSocket } from 'ws';
import type { Answer } from '../subscriptions/answer.ts';
import type { Sink, Subscription } from '../subscriptions/subscription.ts';

/** The socket of one client, below the WebSocket: what is sent to many is put into a frame here, not by each WebSocket. */
export class SocketWriter {
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  /** Those who wait until the client has read. */
  #waiting: Set<Subscription> | undefined;

  constructor(webSocket: WebSocket, socket: Duplex) {
    this.#webSocket = webSocket;
    this.#socket = socket;
  }

  /** Whether it takes a message now; when it does again, the subscription is woken. */
  isReadyFor(subscription: Subscription): boolean {
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
    if (length <= mostCopied) {
      this.#socket.write(Buffer.concat([frameHeader(length), head, json, tail]));
      return;
    }
    this.#socket.cork();
    for (const part of [frameHeader(length), head, json, tail]) this.#socket.write(part);
    this.#socket.uncork();
  }
}

// One buffer is written faster than four, until what is copied is more than a few pages.
const mostCopied = 16_384;
const tail = Buffer.from('}');

/** Of a text of so many bytes, whole, as a server sends it (RFC 6455, 5.2). */
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
 * One subscription on a WebSocket. For the protocol's implementation it is a stream without values, which ends when the subscription does:
 * what the implementation would do for each value and subscriber is done once for each value.
 */
export class WebSocketSink implements Sink, AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #writer: SocketWriter;
  readonly #subscription: Subscription;
  readonly #head: Buffer;
  readonly #end = Promise.withResolvers<typeof done>();
  #isServed = false;

  constructor(writer: SocketWriter, subscription: Subscription, id: string) {
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
