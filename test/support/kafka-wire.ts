/** Reads the fields of one request, in Kafka's encoding. Throws if a field is not there. */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  #skip(length: number): number {
    const at = this.#at;
    if (length < 0 || at + length > this.#bytes.length)
      throw new Error(`Expected ${length} bytes at ${at} of ${this.#bytes.length}.`);
    this.#at += length;
    return at;
  }
  get rest(): number {
    return this.#bytes.length - this.#at;
  }
  int8(): number {
    return this.#bytes.readInt8(this.#skip(1));
  }
  int16(): number {
    return this.#bytes.readInt16BE(this.#skip(2));
  }
  int32(): number {
    return this.#bytes.readInt32BE(this.#skip(4));
  }
  uint32(): number {
    return this.#bytes.readUInt32BE(this.#skip(4));
  }
  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#skip(8));
  }
  /** A signed number of up to 64 bits in zigzag encoding. */
  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = BigInt(this.#bytes.readUInt8(this.#skip(1)));
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return (value >> 1n) ^ -(value & 1n);
    }
    throw new Error('A variable number has more than ten bytes.');
  }
  raw(length: number): Buffer {
    const at = this.#skip(length);
    return this.#bytes.subarray(at, at + length);
  }
  nullableString(): string | null {
    const length = this.int16();
    return length === -1 ? null : this.raw(length).toString('utf8');
  }
  string(): string {
    const value = this.nullableString();
    if (value === null) throw new Error('Expected a text, found null.');
    return value;
  }
  bytes(): Buffer {
    return this.raw(this.int32());
  }
  array<T>(read: () => T): T[] {
    return Array.from({ length: this.int32() }, read);
  }
  /** Everything must have been read. */
  end(): void {
    if (this.rest > 0) throw new Error(`${this.rest} bytes follow the last field.`);
  }
}

/** Writes the fields of one response. */
export class WireWriter {
  readonly #parts: Buffer[] = [];

  int8(value: number): this {
    const part = Buffer.alloc(1);
    part.writeInt8(value);
    return this.raw(part);
  }
  int16(value: number): this {
    const part = Buffer.alloc(2);
    part.writeInt16BE(value);
    return this.raw(part);
  }
  int32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeInt32BE(value);
    return this.raw(part);
  }
  int64(value: bigint): this {
    const part = Buffer.alloc(8);
    part.writeBigInt64BE(value);
    return this.raw(part);
  }
  string(value: string | null): this {
    if (value === null) return this.int16(-1);
    const part = Buffer.from(value);
    return this.int16(part.length).raw(part);
  }
  bytes(value: Buffer): this {
    return this.int32(value.length).raw(value);
  }
  array<T>(values: readonly T[], write: (value: T) => unknown): this {
    this.int32(values.length);
    for (const value of values) write(value);
    return this;
  }
  raw(part: Buffer): this {
    this.#parts.push(part);
    return this;
  }
  get buffer(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

export interface KafkaRecord {
  readonly offset: bigint;
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A batch of records in format 2, as a producer sends it and a broker stores it. */
export interface RecordBatch {
  readonly bytes: Buffer;
  readonly baseOffset: bigint;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly records: readonly KafkaRecord[];
}

const headerLength = 12; // the base offset and the length of what follows

/** The length of the batch at the start of `bytes`, or `undefined` if it is not whole. */
export function batchLength(bytes: Buffer): number | undefined {
  if (bytes.length < headerLength) return undefined;
  const length = headerLength + bytes.readInt32BE(8);
  return length <= bytes.length ? length : undefined;
}

/** Checks everything that a broker checks, and that the batch is one that the relay may send: not compressed, not transactional, with keys. */
export function parseBatch(bytes: Buffer): RecordBatch {
  const reader = new WireReader(bytes);
  const baseOffset = reader.int64();
  expectEqual('length of the batch', reader.int32(), bytes.length - headerLength);
  reader.int32(); // the epoch of the partition's leader, set by brokers
  expectEqual('format of the batch', reader.int8(), 2);
  expectEqual('checksum', reader.uint32(), crc32c(bytes.subarray(bytes.length - reader.rest)));
  expectEqual('attributes', reader.int16(), 0);
  const lastOffsetDelta = reader.int32();
  const firstTimestamp = reader.int64();
  const maxTimestamp = reader.int64();
  if (maxTimestamp < firstTimestamp) throw new Error('The last timestamp is before the first.');
  const producerId = reader.int64();
  const producerEpoch = reader.int16();
  const firstSequence = reader.int32();
  const count = reader.int32();
  expectEqual('number of records', count, lastOffsetDelta + 1);
  const records = Array.from({ length: count }, (_, index) => {
    const record = new WireReader(reader.raw(Number(reader.varint())));
    expectEqual('attributes of a record', record.int8(), 0);
    record.varint(); // time since the first timestamp
    expectEqual('place of a record', record.varint(), BigInt(index));
    const text = () => record.raw(Number(record.varint())).toString('utf8');
    const [key, value] = [text(), text()];
    const headers = Array.from({ length: Number(record.varint()) }, () => [text(), text()] as const);
    record.end();
    return { offset: baseOffset + BigInt(index), key, value, headers: Object.fromEntries(headers) };
  });
  reader.end();
  return { bytes, baseOffset, producerId, producerEpoch, firstSequence, records };
}

function expectEqual<T>(what: string, found: T, expected: T): void {
  if (found !== expected) throw new Error(`Expected ${expected} as the ${what}, found ${found}.`);
}

/** CRC-32C (Castagnoli), bit by bit. */
export function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
