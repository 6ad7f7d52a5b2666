import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CrashPoint, KafkaPartition } from './kafka-partition.ts';
import { apis, type KafkaState } from './kafka-requests.ts';
import { type KafkaRecord, WireReader, WireWriter } from './kafka-wire.ts';
import { freePort } from './postgres-cluster.ts';

/**
 * A small server that speaks the wire protocol of Kafka, as far as kafkajs needs it for a producer and for one consumer:
 * one node, no replicas, no transactions, no compression, one consumer group of one member. Messages are in files, and
 * survive a restart. It refuses what a Kafka broker refuses, and more: see {@link KafkaServer.violations}.
 */
export interface KafkaServer {
  /** The same after restarts. */
  readonly address: string;
  /** What clients sent that the protocol, or this server, does not allow. The connection was closed. */
  readonly violations: readonly string[];
  start(): Promise<void>;
  /** Closes all connections at once: requests under way get no response. */
  end(): Promise<void>;
  /** Resolves when the server has ended at the next message that it was to store: before, during or after it wrote that. */
  crash(point: CrashPoint): Promise<void>;
  /** The stored messages of each partition, in order. Also without clients, and while the server is down. */
  partitions(topic: string): readonly (readonly KafkaRecord[])[];
  /** Ends the server and deletes its messages. */
  remove(): Promise<void>;
}

/**
 * @param options.partitions of each topic. @default 3
 * @param options.maxBatchBytes larger batches are refused, as by `message.max.bytes`. @default 1000000
 */
export async function createKafkaServer(
  options: { readonly partitions?: number; readonly maxBatchBytes?: number } = {},
): Promise<KafkaServer> {
  const { partitions: perTopic = 3, maxBatchBytes = 1_000_000 } = options;
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'refold-kafka-'));
  const violations: string[] = [];
  const crashed = new Set<() => void>();
  let running: { server: Server; sockets: Set<Socket>; end: () => void } | undefined;
  let crashPoint: CrashPoint | undefined;

  const file = (topic: string, index: number) => join(directory, `${encodeURIComponent(topic)}-${index}.log`);

  async function end(): Promise<void> {
    if (!running) return;
    const { server, sockets, end: endWaits } = running;
    running = undefined;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    endWaits();
    await closed;
  }

  /** Everything in memory: read from the files at a start, and forgotten at the end. */
  function openState(waits: Set<() => void>): KafkaState {
    const opened = new Map<string, KafkaPartition[]>();
    const producers = join(directory, 'producers');
    const topicOf = (topic: string) => {
      let parts = opened.get(topic);
      if (!parts) {
        parts = Array.from({ length: perTopic }, (_, index) => new KafkaPartition(file(topic, index)));
        opened.set(topic, parts);
      }
      return parts;
    };
    return {
      port,
      maxBatchBytes,
      crash: undefined,
      group: { generation: 0, member: undefined, assignment: Buffer.alloc(0), offsets: new Map() },
      partition: (topic, index) => topicOf(topic)[index],
      partitionsOf: (topic) => topicOf(topic).length,
      nextProducerId() {
        const id = existsSync(producers) ? BigInt(readFileSync(producers, 'utf8')) + 1n : 1n;
        writeFileSync(producers, String(id));
        return id;
      },
      changed(timeoutMs) {
        return new Promise((resolve) => {
          const wake = () => {
            clearTimeout(timer);
            waits.delete(wake);
            resolve();
          };
          const timer = setTimeout(wake, timeoutMs);
          waits.add(wake);
        });
      },
    };
  }

  /** One request. Returns the response, or nothing if the server broke down. */
  async function respond(frame: Buffer, state: KafkaState): Promise<Buffer | undefined> {
    const request = new WireReader(frame);
    const [key, version, correlation] = [request.int16(), request.int16(), request.int32()];
    if (!request.nullableString()) throw new Error('Expected a client id.');
    const api = apis[key];
    if (!api || version < api.versions[0] || version > api.versions[1])
      throw new Error(`Expected no request of kind ${key} in version ${version}.`);
    const response = new WireWriter().int32(correlation);
    if (api.name === 'Produce') state.crash = crashPoint;
    await api.handle(request, response, state);
    return state.crash ? undefined : response.buffer;
  }

  function serve(socket: Socket, state: KafkaState, waits: Set<() => void>): void {
    let received = Buffer.alloc(0);
    let last = Promise.resolve();
    const answer = async (frame: Buffer) => {
      if (socket.destroyed) return;
      try {
        const response = await respond(frame, state);
        if (response === undefined) {
          crashPoint = undefined;
          await end();
          for (const resolve of crashed) resolve();
          crashed.clear();
          return;
        }
        const length = Buffer.alloc(4);
        length.writeInt32BE(response.length);
        if (!socket.destroyed) socket.write(Buffer.concat([length, response]));
        for (const wake of [...waits]) wake();
      } catch (error) {
        violations.push(String(error));
        socket.destroy();
      }
    };
    socket.on('error', () => {}); // a killed client; 'close' follows
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= 4 && received.length >= 4 + received.readInt32BE(0)) {
        const frame = Buffer.from(received.subarray(4, 4 + received.readInt32BE(0)));
        received = received.subarray(4 + frame.length);
        last = last.then(() => answer(frame)); // a connection's requests are answered in order
      }
    });
  }

  return {
    address: `127.0.0.1:${port}`,
    violations,
    async start() {
      const sockets = new Set<Socket>();
      const waits = new Set<() => void>();
      const state = openState(waits);
      const server = createServer((socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
        serve(socket, state, waits);
      });
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      running = {
        server,
        sockets,
        end: () => {
          for (const wake of [...waits]) wake();
        },
      };
    },
    end,
    crash(point) {
      crashPoint = point;
      return new Promise((resolve) => crashed.add(resolve));
    },
    partitions: (topic) =>
      Array.from({ length: perTopic }, (_, index) =>
        new KafkaPartition(file(topic, index)).batches.flatMap(({ records }) => records),
      ),
    async remove() {
      await end();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
