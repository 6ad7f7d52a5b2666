import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventPace } from '../../events/event-pace.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { hidesKey } from '../../projections/declaration/hidden-values.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import type { FoldStep } from '../../projections/fold/fold.ts';
import { foldByPolicy, foldInTurns, stepsByPolicy } from '../../projections/fold/fold-by-policy.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { createUniqueClaims, type UniqueClaims } from '../../projections/fold/unique-claims.ts';
import { type FoldFailure, keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import { insertDeadLetters, type NewDeadLetter } from '../processors/dead-letters.ts';
import { recordSkips } from '../processors/left-out.ts';
import { recordChanges } from '../processors/record-changes.ts';
import { UnwrittenFailures } from '../processors/unwritten-failures.ts';
import type { Queryable } from '../statements/statement.ts';
import type { ReadTable } from '../tables/read-table.ts';

/** The events that a batch left out of a version's rows. */
export interface LeftOutOfRows {
  readonly letters: readonly NewDeadLetter[];
  /** The failures that the policy `skip` left out. */
  readonly skipped: readonly FoldFailure[];
}

/** The changes of one batch to a version's rows. They must be written in the transaction that read the rows. */
export interface FoldedBatch extends LeftOutOfRows {
  readonly changed: ReadonlyMap<string, { readonly key: RowKey; readonly row: Row | null }>;
  /** Tracks which rows took and released unique values. */
  readonly claims: UniqueClaims | undefined;
  /** With the policy `stop`: the failed groups with their errors. The other fields contain nothing of them. */
  readonly refused: ReadonlyMap<number, RefoldError>;
}

export interface FoldBatchOptions {
  readonly freeze: boolean;
  readonly blocked: readonly string[];
  /**
   * Whether the events are being appended. Unique columns then {@link refusesAppend refuse} what the policy would leave out.
   * @default false
   */
  readonly appended?: boolean;
  /** @default nothing: an event that is being appended cannot be discarded yet */
  readonly discarded?: Discarded;
  /** One that has been started. @default the event loop has no turns meanwhile */
  readonly pace?: EventPace;
  /** Asked after each group whether it must be refused, whatever the policy is. */
  refuse?(): RefoldError | null;
}

/**
 * Folds groups of events, in order, into rows.
 *
 * @param groups each group succeeds or fails as a whole under the policy `stop`
 * @param rows the rows that the events change, by key text; a row that is missing does not exist
 * @param blocked the key texts of the rows that wait for a dead letter
 */
export async function foldBatch(
  projection: Projection,
  groups: readonly (readonly RecordedEvent[])[],
  rows: ReadonlyMap<string, Row>,
  { freeze, blocked, discarded = new Set(), appended = false, pace, refuse }: FoldBatchOptions,
): Promise<FoldedBatch> {
  const changed = new Map<string, { key: RowKey; row: Row | null }>();
  const refused = new Map<number, RefoldError>();
  const failures = new UnwrittenFailures(projection);
  const claims = createUniqueClaims(projection.codec, projection.uniqueIndexes);
  const waiting = new Set(blocked);
  const whole = appended && refusesAppend(projection, { taken: false });
  const policy = whole ? { ...projection, onError: { ...projection.onError, policy: 'stop' as const } } : projection;

  for (const [index, all] of groups.entries()) {
    const ofGroup: typeof changed = new Map();
    const memory = {
      get(text: string): Row | null {
        const known = ofGroup.get(text) ?? changed.get(text);
        return known ? known.row : (rows.get(text) ?? null);
      },
      set(text: string, key: RowKey, row: Row | null) {
        claims?.changed(text, memory.get(text), row);
        ofGroup.set(text, { key, row });
      },
    };
    try {
      const steps = stepsByPolicy(policy, all, discarded, failures.add);
      const held = whole && steps.find(({ text }) => waiting.has(text));
      if (held) {
        refused.set(index, uncheckedRow(projection, held));
        continue;
      }
      const options = { freeze, blocked: waiting, leaveOut: failures.add, pace };
      if (pace) await foldInTurns(policy, steps, memory, options);
      else foldByPolicy(policy, steps, memory, options);
      const refusal = refuse?.() ?? null;
      if (refusal) {
        refused.set(index, refusal);
        continue;
      }
      for (const [text, entry] of ofGroup) changed.set(text, entry);
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      refused.set(index, error);
    }
  }
  const { letters, skipped } = failures;
  return { changed, letters, skipped, claims, refused };
}

/**
 * Whether an append is refused if one of its events fails. Unique columns are a rule for appends: a taken value refuses the append whatever
 * `onError` says, and so does each event that would become a dead letter, because its values would be checked only after others are taken.
 */
export function refusesAppend({ onError, uniqueIndexes }: Projection, { taken }: { readonly taken: boolean }): boolean {
  return onError.policy === 'stop' || (uniqueIndexes.length > 0 && (taken || onError.policy === 'dead-letter'));
}

function uncheckedRow(projection: Projection, { event, text }: FoldStep): RefoldError {
  const { id } = projection;
  return new RefoldError(
    'UNIQUE_CHECK_UNAVAILABLE',
    `The unique values of ${hidesKey(projection) ? 'a row' : `the row ${text}`} of ${id} can't be checked: the row waits for a dead letter. Nothing was written. Retry or discard it: 'refold dead-letters list ${id}'.`,
    { types: [`${event.family}.${event.type}`], waitedMs: 0 },
  );
}

/** The rows that events change, by key text. An event whose key fails is skipped: the fold reports the error. */
export function keysTouched(projection: Projection, events: readonly RecordedEvent[]): Map<string, RowKey> {
  const keys = new Map<string, RowKey>();
  for (const event of events) {
    try {
      for (const key of projection.keysOf(event)) keys.set(keyText(key), key);
    } catch {
      // The fold meets the error again and applies the projection's error policy.
    }
  }
  return keys;
}

/** The statements that write a batch. Each must run in the batch's transaction. */
export function writesOf(
  tx: Queryable,
  projection: Projection,
  table: ReadTable,
  { changed, letters, skipped }: FoldedBatch,
  checkpoint: GlobalPosition,
): (() => Promise<unknown>)[] {
  const upserted: Row[] = [];
  const upsertedKeys: RowKey[] = [];
  const deletedKeys: RowKey[] = [];
  for (const { key, row } of changed.values()) {
    if (row) {
      upserted.push(row);
      upsertedKeys.push(key);
    } else deletedKeys.push(key);
  }
  const writes: (() => Promise<unknown>)[] = [];
  const changes = { projection, checkpoint, upserted: upsertedKeys, deleted: deletedKeys };
  if (deletedKeys.length > 0) writes.push(() => table.remove(tx, deletedKeys));
  if (upserted.length > 0)
    writes.push(
      () => table.vacate(tx, upserted),
      () => table.upsert(tx, upserted, changes),
    );
  else if (deletedKeys.length > 0) writes.push(() => recordChanges(tx, changes));
  if (letters.length > 0) writes.push(() => insertDeadLetters(tx, projection, letters));
  if (skipped.length > 0) writes.push(() => recordSkipsOf(tx, projection, skipped));
  return writes;
}

/** Records what an append leaves out. There is no processor that would record it. */
export async function recordSkipsOf(
  tx: Queryable,
  { name, version, tableName }: Projection,
  skipped: readonly FoldFailure[],
): Promise<void> {
  if (skipped.length > 0) await recordSkips(tx, { kind: 'processor', name, version, partition: 0 }, tableName, skipped);
}
