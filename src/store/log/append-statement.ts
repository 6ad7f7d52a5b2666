import type { RefoldError } from '../../errors.ts';
import type { ExpectedVersion } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isoTimestamp } from '../statements/column-parsers.ts';
import type { Queryable } from '../statements/statement.ts';

/** An append of one caller, checked and ready to send. */
export interface PreparedAppend {
  readonly parts: readonly AppendPart[];
  readonly idempotencyKey: string | undefined;
  /** Fingerprint of the request that the key belongs to. */
  readonly idempotencyFingerprint: string | undefined;
}

/** One stream of an append. If it has no events, only the stream's version is checked. */
export interface AppendPart {
  readonly family: string;
  /** The family's name in the log. */
  readonly storedFamily: string;
  readonly streamId: string;
  readonly expectedVersion: ExpectedVersion;
  /** Each event as JSON without the opening brace; see {@link eventMembers}. */
  readonly events: readonly string[];
}

export interface StreamVersion {
  readonly family: string;
  readonly streamId: string;
  readonly version: number;
}

export interface WrittenAppend {
  readonly recordedAt: string;
  /** One position for each event, in order. */
  readonly positions: readonly GlobalPosition[];
  /** The version of each stream after the append. */
  readonly streams: readonly StreamVersion[];
  /** Fingerprint of the request that the key belongs to. */
  readonly idempotencyFingerprint?: string | undefined;
}

export type AppendOutcome =
  | ({ readonly kind: 'written' } & WrittenAppend)
  /** The idempotency key was used before. Holds what that append wrote. */
  | ({ readonly kind: 'duplicate' } & WrittenAppend)
  | { readonly kind: 'conflict'; readonly part: AppendPart; readonly actual: number }
  /** An inline projection cannot fold the append. */
  | { readonly kind: 'refused'; readonly error: RefoldError };

interface AppendRow {
  starts: (bigint | null)[];
  positions: bigint[] | null;
  recorded: string;
  verdicts: number[] | null;
  actuals: (bigint | null)[] | null;
  earlier: Record<string, StoredAppend> | null;
}

interface StoredAppend {
  readonly recordedAt: string;
  readonly positions: readonly number[];
  readonly streams: readonly (readonly [family: string, streamId: string, version: number])[];
  readonly input?: string;
  /** Instead of `input`, if the key is a workflow step's. */
  readonly step?: string;
}

/**
 * Sends a batch of independent appends as one statement and returns the outcome of each. A refused append does not affect the others. If
 * the statement fails, all appends fail and nothing is written.
 *
 * @param lockTimeoutMs how long to wait for each lock. Omit it within a transaction, because it would change the transaction's setting.
 */
export async function appendBatch(
  target: Queryable,
  batch: readonly PreparedAppend[],
  lockTimeoutMs?: number,
): Promise<AppendOutcome[]> {
  const [row] = await target.query<AppendRow>({
    name: 'refold_append',
    text: 'select * from refold.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
    values: [...parametersOf(batch), lockTimeoutMs ?? null],
  });
  if (!row) throw new Error('refold.append must return one row'); // it has out parameters and returns no set
  return outcomesOf(batch, row);
}

/** What an append with this idempotency key wrote; undefined if there was none. */
export async function findAppend(target: Queryable, idempotencyKey: string): Promise<WrittenAppend | undefined> {
  const [row] = await target.query<{ result: StoredAppend | null }>({
    name: 'refold_find_append',
    text: 'select result from refold.append_keys where key = $1',
    values: [idempotencyKey],
  });
  return row?.result ? fromStored(row.result) : undefined;
}

/** An event in the format of `refold.append`, without the number of its part. That number is known only when batches are joined. */
export function eventMembers(event: {
  id: string;
  family: string;
  streamId: string;
  type: string;
  payloadVersion: number;
  payloadJson: string;
  metadataJson: string;
}): string {
  const { id, family, streamId, type, payloadVersion, payloadJson, metadataJson } = event;
  return (
    `"id":"${id}","version":${payloadVersion},"family":"${family}","stream":${JSON.stringify(streamId)},` +
    `"type":"${type}","payload":${payloadJson},"metadata":${metadataJson}}`
  );
}

const expectedVersionCodes = { any: -1, 'stream-exists': -2, 'no-stream': 0 } as const;

interface BatchStream {
  readonly family: string;
  readonly streamId: string;
  number: number;
  size: number;
}

function parametersOf(batch: readonly PreparedAppend[]): unknown[] {
  const streams = streamsOf(batch);
  const partAppends: number[] = [];
  const partStreams: number[] = [];
  const partExpected: number[] = [];
  const partSizes: number[] = [];
  const partOffsets: number[] = [];
  const events: string[] = [];

  for (const [append, { parts }] of batch.entries()) {
    for (const part of parts) {
      const stream = streams.get(streamName(part)) as BatchStream; // the map was built from these parts
      const { expectedVersion } = part;
      const partNumber = partAppends.push(append + 1);
      partStreams.push(stream.number);
      partExpected.push(typeof expectedVersion === 'number' ? expectedVersion : expectedVersionCodes[expectedVersion]);
      partSizes.push(part.events.length);
      partOffsets.push(stream.size);
      stream.size += part.events.length;
      for (const [index, members] of part.events.entries()) {
        events.push(`{"part":${partNumber},"number":${index + 1},${members}`);
      }
    }
  }

  const families: string[] = [];
  const streamIds: string[] = [];
  const streamSizes: number[] = [];
  for (const { family, streamId, size } of streams.values()) {
    families.push(family);
    streamIds.push(streamId);
    streamSizes.push(size);
  }
  const keyed = batch.some(({ idempotencyKey }) => idempotencyKey !== undefined);
  const keys = keyed ? batch.map(({ idempotencyKey }) => idempotencyKey ?? null) : null;
  const inputs = keyed ? batch.map(({ idempotencyFingerprint }) => idempotencyFingerprint ?? null) : null;
  const ofParts = [partAppends, partStreams, partExpected, partSizes, partOffsets];
  return [families, streamIds, streamSizes, keys, ...ofParts, `[${events.join(',')}]`, inputs];
}

/** The streams of a batch, numbered from 1. All processes lock streams in this order. */
function streamsOf(batch: readonly PreparedAppend[]): Map<string, BatchStream> {
  const byName = new Map<string, BatchStream>();
  for (const { parts } of batch) {
    for (const part of parts) {
      byName.set(streamName(part), { family: part.storedFamily, streamId: part.streamId, number: 1, size: 0 });
    }
  }
  if (byName.size === 1) return byName;
  const names = [...byName.keys()].sort(); // by code units: the same on every machine
  const sorted = new Map<string, BatchStream>();
  for (const [index, name] of names.entries()) {
    const stream = byName.get(name) as BatchStream; // a key of the map
    stream.number = index + 1;
    sorted.set(name, stream);
  }
  return sorted;
}

// A family's name contains no space.
const streamName = ({ family, streamId }: AppendPart) => `${family} ${streamId}`;

function outcomesOf(batch: readonly PreparedAppend[], row: AppendRow): AppendOutcome[] {
  const writtenByKey = new Map<string, WrittenAppend>();
  const positions = row.positions ?? [];
  let part = 0;
  let event = 0;
  return batch.map((append, index): AppendOutcome => {
    const firstPart = part;
    part += append.parts.length;
    const verdict = row.verdicts?.[index] ?? 0;
    if (verdict > 0) {
      const refused = append.parts[verdict - 1 - firstPart] as AppendPart; // the verdict is the number of a part of this append
      return { kind: 'conflict', part: refused, actual: Number(row.actuals?.[index]) };
    }
    const key = append.idempotencyKey;
    if (verdict < 0) {
      const stored = row.earlier?.[key ?? ''];
      const earlier = stored ? fromStored(stored) : writtenByKey.get(key ?? '');
      if (!earlier) throw new Error(`No earlier append with the idempotency key '${key}'`); // the verdict implies that one exists
      return { kind: 'duplicate', ...earlier };
    }
    const firstEvent = event;
    const streams = append.parts.map(({ family, streamId, events }, offset) => {
      event += events.length;
      return { family, streamId, version: Number(row.starts[firstPart + offset]) + events.length };
    });
    const written = {
      recordedAt: row.recorded,
      positions: positions.slice(firstEvent, event).map(globalPosition),
      streams,
      idempotencyFingerprint: append.idempotencyFingerprint,
    };
    if (key !== undefined) writtenByKey.set(key, written);
    return { kind: 'written', ...written };
  });
}

function fromStored(stored: StoredAppend): WrittenAppend {
  return {
    recordedAt: isoTimestamp(stored.recordedAt.replace('T', ' ').replace('+00:00', '+00')),
    positions: stored.positions.map((position) => globalPosition(BigInt(position))),
    streams: stored.streams.map(([family, streamId, version]) => ({ family, streamId, version })),
    idempotencyFingerprint: stored.input ?? stored.step,
  };
}

/** Deletes old keys of clients, at most `atMost`. Returns how many it deleted. */
export async function pruneAppendKeys(target: Queryable, days: number, atMost: number): Promise<number> {
  const gone = await target.query({
    name: 'refold_prune_append_keys',
    text: `
      delete from refold.append_keys
      where key = any (array(
        select key
        from refold.append_keys
        where result ? 'input'
          and recorded_at < now() - make_interval(days => $1)
        order by recorded_at
        limit $2
        for update skip locked
      ))
      returning key`,
    values: [days, atMost],
  });
  return gone.length;
}
