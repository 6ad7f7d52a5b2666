import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { batchLength, parseBatch, type RecordBatch } from './kafka-wire.ts';

/** Kafka's error codes, as far as the server uses them. */
export const kafkaErrors = {
  none: 0,
  offsetOutOfRange: 1,
  unknownTopicOrPartition: 3,
  messageTooLarge: 10,
  illegalGeneration: 22,
  unknownMemberId: 25,
  unsupportedVersion: 35,
  outOfOrderSequence: 45,
  memberIdRequired: 79,
} as const;

/** Where a server breaks down while it stores a batch. */
export type CrashPoint = 'before' | 'during' | 'after';

/** One partition of a topic: a file of batches, each of which is there before it is acknowledged. */
export class KafkaPartition {
  readonly #file: string;
  readonly batches: RecordBatch[] = [];

  /** Reads the file; what a crash has left of a batch that was not acknowledged is cut off. */
  constructor(file: string) {
    this.#file = file;
    let bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    let kept = 0;
    for (let length = batchLength(bytes); length !== undefined; length = batchLength(bytes)) {
      this.batches.push(parseBatch(bytes.subarray(0, length)));
      kept += length;
      bytes = bytes.subarray(length);
    }
    if (bytes.length > 0) truncateSync(file, kept);
  }

  get end(): bigint {
    const last = this.batches.at(-1);
    return last ? last.baseOffset + BigInt(last.records.length) : 0n;
  }

  /**
   * Stores a batch under Kafka's rules for idempotent producers: the sequence numbers of a producer continue without a gap,
   * and one of its last five batches is not stored again.
   */
  append(sent: Buffer, crash: CrashPoint | undefined): { error: number; offset: bigint } {
    const { producerId, firstSequence, records } = parseBatch(sent);
    const own = this.batches.filter((batch) => batch.producerId === producerId);
    const repeated = own
      .slice(-5)
      .find((batch) => batch.firstSequence === firstSequence && batch.records.length === records.length);
    if (repeated) return { error: kafkaErrors.none, offset: repeated.baseOffset };
    const last = own.at(-1);
    if (firstSequence !== (last ? last.firstSequence + last.records.length : 0))
      return { error: kafkaErrors.outOfOrderSequence, offset: -1n };
    const offset = this.end;
    const stored = Buffer.from(sent);
    stored.writeBigInt64BE(offset); // the checksum does not cover it
    if (crash !== 'before')
      appendFileSync(this.#file, crash === 'during' ? stored.subarray(0, stored.length >> 1) : stored);
    if (crash === undefined) this.batches.push(parseBatch(stored));
    return { error: kafkaErrors.none, offset };
  }
}
