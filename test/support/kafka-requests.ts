import { type CrashPoint, type KafkaPartition, kafkaErrors } from './kafka-partition.ts';
import type { WireReader, WireWriter } from './kafka-wire.ts';

/** What the requests of one connection work on. */
export interface KafkaState {
  readonly port: number;
  readonly maxBatchBytes: number;
  partition(topic: string, index: number): KafkaPartition | undefined;
  /** Creates the topic if it does not exist, and returns the number of its partitions. */
  partitionsOf(topic: string): number;
  nextProducerId(): bigint;
  readonly group: KafkaGroup;
  /** Set if the server breaks down at this request. */
  crash: CrashPoint | undefined;
  /** Resolves when something was stored, or after a time. */
  changed(timeoutMs: number): Promise<void>;
}

/** The one consumer group, of one member at a time. */
export interface KafkaGroup {
  generation: number;
  member: string | undefined;
  assignment: Buffer;
  readonly offsets: Map<string, bigint>;
}

interface Api {
  readonly name: string;
  readonly versions: readonly [number, number];
  /** Reads the request to its end, and writes the response. */
  readonly handle: (request: WireReader, response: WireWriter, state: KafkaState) => Promise<void> | void;
}

const node = 1;

/** The requests that the server understands, each in the newest version that kafkajs 2 sends. Anything else is a violation. */
export const apis: Readonly<Record<number, Api>> = {
  0: { name: 'Produce', versions: [7, 7], handle: produce },
  1: { name: 'Fetch', versions: [11, 11], handle: fetch },
  2: { name: 'ListOffsets', versions: [3, 3], handle: listOffsets },
  3: { name: 'Metadata', versions: [6, 6], handle: metadata },
  8: { name: 'OffsetCommit', versions: [5, 5], handle: offsetCommit },
  9: { name: 'OffsetFetch', versions: [4, 4], handle: offsetFetch },
  10: { name: 'FindCoordinator', versions: [2, 2], handle: findCoordinator },
  11: { name: 'JoinGroup', versions: [5, 5], handle: joinGroup },
  12: { name: 'Heartbeat', versions: [3, 3], handle: heartbeat },
  13: { name: 'LeaveGroup', versions: [3, 3], handle: leaveGroup },
  14: { name: 'SyncGroup', versions: [3, 3], handle: syncGroup },
  18: { name: 'ApiVersions', versions: [0, 2], handle: apiVersions },
  22: { name: 'InitProducerId', versions: [1, 1], handle: initProducerId },
};

function apiVersions(request: WireReader, response: WireWriter): void {
  request.end();
  response.int16(kafkaErrors.none);
  response.array(Object.entries(apis), ([key, { versions }]) =>
    response.int16(Number(key)).int16(versions[0]).int16(versions[1]),
  );
  response.int32(0);
}

function metadata(request: WireReader, response: WireWriter, state: KafkaState): void {
  const topics = request.array(() => request.string());
  request.int8(); // may topics be created: always
  request.end();
  response.int32(0);
  response.array([node], (id) => response.int32(id).string('127.0.0.1').int32(state.port).string(null));
  response.string('refold-test').int32(node);
  response.array(topics, (topic) => {
    response.int16(kafkaErrors.none).string(topic).int8(0);
    const partitions = Array.from({ length: state.partitionsOf(topic) }, (_, index) => index);
    response.array(partitions, (index) => {
      response.int16(kafkaErrors.none).int32(index).int32(node);
      response.array([node], (id) => response.int32(id));
      response.array([node], (id) => response.int32(id));
      response.array([], () => {});
    });
  });
}

function initProducerId(request: WireReader, response: WireWriter, state: KafkaState): void {
  expectNoTransaction(request.nullableString());
  request.int32(); // the time that a transaction may take
  request.end();
  response.int32(0).int16(kafkaErrors.none).int64(state.nextProducerId()).int16(0);
}

function produce(request: WireReader, response: WireWriter, state: KafkaState): void {
  expectNoTransaction(request.nullableString());
  const acks = request.int16();
  if (acks !== -1) throw new Error(`Expected that all replicas must acknowledge, found acks ${acks}.`);
  request.int32(); // timeout
  const topics = request.array(() => ({
    topic: request.string(),
    parts: request.array(() => ({ index: request.int32(), batch: request.bytes() })),
  }));
  request.end();
  response.array(topics, ({ topic, parts }) => {
    response.string(topic);
    response.array(parts, ({ index, batch }) => {
      const partition = state.partition(topic, index);
      const { error, offset } = !partition
        ? { error: kafkaErrors.unknownTopicOrPartition, offset: -1n }
        : batch.length > state.maxBatchBytes
          ? { error: kafkaErrors.messageTooLarge, offset: -1n }
          : partition.append(batch, state.crash);
      response.int32(index).int16(error).int64(offset).int64(-1n).int64(0n);
    });
  });
  response.int32(0);
}

function expectNoTransaction(id: string | null): void {
  if (id !== null) throw new Error(`Expected no transaction, found '${id}'.`);
}

async function fetch(request: WireReader, response: WireWriter, state: KafkaState): Promise<void> {
  request.int32(); // replica
  const maxWait = request.int32();
  request.int32(); // fewest bytes
  const maxBytes = request.int32();
  request.int8(); // isolation: there are no transactions
  if (request.int32() !== 0 || request.int32() !== -1) throw new Error('Expected no fetch session.');
  const topics = request.array(() => ({
    topic: request.string(),
    parts: request.array(() => {
      const index = request.int32();
      request.int32(); // leader epoch
      const offset = request.int64();
      request.int64(); // log start
      request.int32(); // most bytes of the partition
      return { index, offset };
    }),
  }));
  request.array(() => [request.string(), request.array(() => request.int32())]); // of fetch sessions
  request.string(); // rack
  request.end();
  const hasMore = () =>
    topics.some(({ topic, parts }) =>
      parts.some(({ index, offset }) => (state.partition(topic, index)?.end ?? 0n) > offset),
    );
  if (!hasMore()) await state.changed(maxWait);
  response.int32(0).int16(kafkaErrors.none).int32(0);
  response.array(topics, ({ topic, parts }) => {
    response.string(topic);
    response.array(parts, ({ index, offset }) => {
      const partition = state.partition(topic, index);
      const end = partition?.end ?? 0n;
      const error = !partition
        ? kafkaErrors.unknownTopicOrPartition
        : offset < 0n || offset > end
          ? kafkaErrors.offsetOutOfRange
          : kafkaErrors.none;
      const found: Buffer[] = [];
      let size = 0;
      for (const { bytes, baseOffset, records } of error ? [] : (partition?.batches ?? [])) {
        if (baseOffset + BigInt(records.length) <= offset) continue;
        if (size > 0 && size + bytes.length > maxBytes) break;
        found.push(bytes);
        size += bytes.length;
      }
      response.int32(index).int16(error).int64(end).int64(end).int64(0n);
      response.array([], () => {}).int32(-1); // no aborted transactions, no preferred replica
      response.bytes(Buffer.concat(found));
    });
  });
}

function listOffsets(request: WireReader, response: WireWriter, state: KafkaState): void {
  request.int32(); // replica
  request.int8(); // isolation
  const topics = request.array(() => ({
    topic: request.string(),
    parts: request.array(() => ({ index: request.int32(), timestamp: request.int64() })),
  }));
  request.end();
  response.int32(0);
  response.array(topics, ({ topic, parts }) => {
    response.string(topic);
    response.array(parts, ({ index, timestamp }) => {
      // Only the special times "earliest" (-2) and "latest" (-1).
      if (timestamp !== -1n && timestamp !== -2n) throw new Error(`Expected no time, found ${timestamp}.`);
      const offset = timestamp === -2n ? 0n : (state.partition(topic, index)?.end ?? 0n);
      response.int32(index).int16(kafkaErrors.none).int64(-1n).int64(offset);
    });
  });
}

function findCoordinator(request: WireReader, response: WireWriter, state: KafkaState): void {
  request.string();
  if (request.int8() !== 0) throw new Error('Expected the coordinator of a group.');
  request.end();
  response.int32(0).int16(kafkaErrors.none).string(null).int32(node).string('127.0.0.1').int32(state.port);
}

function joinGroup(request: WireReader, response: WireWriter, { group }: KafkaState): void {
  request.string(); // group
  request.int32(); // session timeout
  request.int32(); // rebalance timeout
  const asked = request.string();
  request.nullableString(); // instance
  request.string(); // protocol type
  const [protocol] = request.array(() => ({ name: request.string(), metadata: request.bytes() }));
  request.end();
  if (!protocol) throw new Error('Expected a protocol.');
  const error =
    asked === ''
      ? kafkaErrors.memberIdRequired
      : group.member !== undefined && group.member !== asked
        ? kafkaErrors.unknownMemberId
        : kafkaErrors.none;
  const member = asked || `member-${group.generation + 1}`;
  if (error === kafkaErrors.none) {
    group.member = member;
    group.generation++;
  }
  response.int32(0).int16(error).int32(group.generation).string(protocol.name).string(member).string(member);
  response.array(error ? [] : [member], (id) => response.string(id).string(null).bytes(protocol.metadata));
}

/** The error of a request that names its member and generation. */
function membership({ group }: KafkaState, member: string, generation: number): number {
  if (member !== group.member) return kafkaErrors.unknownMemberId;
  return generation === group.generation ? kafkaErrors.none : kafkaErrors.illegalGeneration;
}

function syncGroup(request: WireReader, response: WireWriter, state: KafkaState): void {
  request.string(); // group
  const generation = request.int32();
  const member = request.string();
  request.nullableString(); // instance
  const [assigned] = request.array(() => ({ member: request.string(), assignment: request.bytes() }));
  request.end();
  const error = membership(state, member, generation);
  if (!error && assigned?.member === member) state.group.assignment = assigned.assignment;
  response
    .int32(0)
    .int16(error)
    .bytes(error ? Buffer.alloc(0) : state.group.assignment);
}

function heartbeat(request: WireReader, response: WireWriter, state: KafkaState): void {
  request.string(); // group
  const generation = request.int32();
  const member = request.string();
  request.nullableString(); // instance
  request.end();
  response.int32(0).int16(membership(state, member, generation));
}

function leaveGroup(request: WireReader, response: WireWriter, { group }: KafkaState): void {
  request.string(); // group
  const members = request.array(() => ({ member: request.string(), instance: request.nullableString() }));
  request.end();
  response.int32(0).int16(kafkaErrors.none);
  response.array(members, ({ member, instance }) => {
    const known = member === group.member;
    if (known) group.member = undefined;
    response.string(member).string(instance);
    response.int16(known ? kafkaErrors.none : kafkaErrors.unknownMemberId);
  });
}

function offsetFetch(request: WireReader, response: WireWriter, { group }: KafkaState): void {
  request.string(); // group
  const topics = request.array(() => ({ topic: request.string(), parts: request.array(() => request.int32()) }));
  request.end();
  response.int32(0);
  response.array(topics, ({ topic, parts }) => {
    response.string(topic);
    response.array(parts, (index) => {
      response.int32(index).int64(group.offsets.get(`${topic}-${index}`) ?? -1n);
      response.string(null).int16(kafkaErrors.none);
    });
  });
  response.int16(kafkaErrors.none);
}

function offsetCommit(request: WireReader, response: WireWriter, state: KafkaState): void {
  request.string(); // group
  const generation = request.int32();
  const member = request.string();
  const topics = request.array(() => ({
    topic: request.string(),
    parts: request.array(() => ({
      index: request.int32(),
      offset: request.int64(),
      metadata: request.nullableString(),
    })),
  }));
  request.end();
  const error = membership(state, member, generation);
  response.int32(0);
  response.array(topics, ({ topic, parts }) => {
    response.string(topic);
    response.array(parts, ({ index, offset }) => {
      if (!error) state.group.offsets.set(`${topic}-${index}`, offset);
      response.int32(index).int16(error);
    });
  });
}
