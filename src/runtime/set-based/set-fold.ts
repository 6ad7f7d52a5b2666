import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import { isEvolveFailure, sqlFoldFailed } from '../../projections/fold/fold-failures.ts';
import { callOnSkip, OnSkipFailed } from '../../projections/fold/on-skip.ts';
import { floorOf, partitionOf } from '../../projections/projection/partition.ts';
import { type FoldFailure, keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { insertChanges } from '../../store/processors/changes.ts';
import { addWork, advanceCheckpoint, type ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { insertDeadLetters } from '../../store/processors/dead-letters.ts';
import { recordSkips } from '../../store/processors/left-out.ts';
import { UnwrittenFailures } from '../../store/processors/unwritten-failures.ts';
import { shareState } from '../../store/registry/registry.ts';
import type { SqlBatch } from '../../store/set-based/readable-batch.ts';
import type { RowChoice } from '../../store/set-based/row-choice.ts';
import type { SetMerge } from '../../store/set-based/set-merge.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { type EventRetries, isSqlEventFailure } from '../dead-letters/event-retries.ts';
import { type BisectOptions, bisectFailures } from '../processors/bisect-failures.ts';
import { type LeftOut, nextCut, reachedShares, readLeftOut } from './left-out-rows.ts';
import { type UpcastEvents, upcastEvents } from './upcast-events.ts';

export interface SetFoldOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  readonly merge: SetMerge;
  readonly retries: EventRetries;
  /** See {@link BisectOptions}. */
  readonly explain?: BisectOptions['explain'];
}

/** How the parts of a range are written. */
export interface Writing {
  readonly state: VersionState;
  /** Whether parts commit by themselves, so that no locks are held while an event waits to be tried again. */
  readonly commits: boolean;
  /** Runs a part in its own transaction, or in a savepoint of the caller's. */
  part(work: (tx: Queryable) => Promise<void>): Promise<void>;
  /** Called after each part, with what was left out of its rows. */
  written(to: GlobalPosition, leftOut: UnwrittenFailures): void;
}

/**
 * Folds ranges of the log with `evolveSql`, around the events that the declared policy leaves out. The rows of a failed event are those that its SQL
 * returns for it by itself, or those of the declared `key`, if the SQL can't compute their keys.
 */
export class SetFold {
  readonly #options: SetFoldOptions;
  /** Everything up to here is written. */
  #written: GlobalPosition;
  /** The error of the event that stops the fold. */
  #stoppedBy: FoldFailure | null = null;
  #leftOut: LeftOut | undefined;
  /** Of the range that is being folded. */
  #upcast: UpcastEvents | undefined;

  constructor(options: SetFoldOptions) {
    this.#options = options;
    this.#written = options.claim.checkpoint;
  }

  get written(): GlobalPosition {
    return this.#written;
  }

  /** Folds everything up to a position, with the policy `stop` up to a failed event. @returns that failure */
  async upTo(end: GlobalPosition, writing: Writing): Promise<FoldFailure | null> {
    this.#leftOut ??= await readLeftOut(this.#options);
    const { log, merge } = this.#options;
    while (this.#written < end && !this.#stoppedBy) {
      const cut = nextCut(this.#leftOut.cuts, this.#written, end);
      this.#upcast = await upcastEvents(log, merge.upcast, this.#written, cut);
      await bisectFailures(
        this.#written,
        this.#upcast.upTo,
        (after, upTo) => this.#range(after, upTo, writing, this.#leftOutOf()),
        (position, error) => this.#alone(position, error, writing, this.#leftOutOf()),
        {
          retries: writing.commits ? this.#options.retries : undefined,
          isFailure: (error) => this.#isFailure(error),
          explain: this.#options.explain,
        },
      );
    }
    this.#upcast = undefined;
    return this.#stoppedBy;
  }

  #leftOutOf(): LeftOut {
    if (!this.#leftOut) throw new Error('What is left out is read first.');
    return this.#leftOut;
  }

  async #range(after: GlobalPosition, upTo: GlobalPosition, writing: Writing, leftOut: LeftOut): Promise<void> {
    const { claim, merge, projection } = this.#options;
    const discarded = leftOut.discards.get(upTo) ?? none; // then it is the only event
    const batch = await this.#batch(after, upTo);
    const failures = new UnwrittenFailures(projection);
    await writing.part(async (tx) => {
      const since = performance.now();
      const keys = await this.#publishes(tx, writing);
      // The fence comes first: a former owner fails before it writes anything, and the row lock keeps a new owner from starting in between.
      await advanceCheckpoint(tx, { claim, from: after, to: upTo, events: 0, rows: 0, busyMs: 0 });
      if (discarded === 'all') return;
      const own = this.#own(after);
      const choice = { ...own, except: [...leftOut.blocked, ...discarded] };
      const { events, rows, upserted, deleted } = await merge.run(tx, { ...batch, choice }, { keys });
      const waiting = [...leftOut.blocked].filter((key) => !discarded.has(key));
      if (waiting.length > 0 && projection.onError.policy === 'dead-letter') {
        const waits = await merge.rowsOfEach(tx, { ...batch, choice: { ...own, only: waiting } });
        failures.letters.push(...waits.map(({ key, ...event }) => ({ ...event, key: keyText(key), error: null })));
      }
      const busyMs = Math.round(performance.now() - since);
      if (events > 0) await addWork(tx, claim, { events, rows, busyMs });
      await this.#publish(tx, upTo, { upserted, deleted, failures });
    });
    this.#settle(upTo, failures, writing);
  }

  /** Folds one event around the rows on which it fails. */
  async #alone(position: GlobalPosition, error: unknown, writing: Writing, leftOut: LeftOut): Promise<'skip' | 'stop'> {
    const { log, projection, retries } = this.#options;
    if (!writing.commits && retries.appliesTo(error)) throw retries.outside(error);
    const event = await log.readAt(position);
    if (!event) throw error;
    const failure = { event, key: null, error: this.#failed(event, error) };
    if (projection.onError.policy === 'stop') {
      this.#stoppedBy = failure;
      return 'stop';
    }
    const batch = await this.#batch(globalPosition(position - 1n), position);
    const around = async () => {
      const failures = new UnwrittenFailures(projection);
      await writing.part((tx) => this.#around(tx, { batch, failure, failures, writing, leftOut }));
      return failures;
    };
    // The rules have already decided on the event. They may still concern the hook.
    const only = (again: unknown) => writing.commits && again instanceof OnSkipFailed;
    this.#settle(position, await retries.run(position, around, { only }), writing);
    return 'skip';
  }

  async #around(tx: Queryable, { batch, failure, failures, writing, leftOut }: Around): Promise<void> {
    const { claim, merge } = this.#options;
    const { event } = failure;
    const since = performance.now();
    const events = isCounted(claim, event.position) ? 1 : 0;
    const keys = await this.#publishes(tx, writing);
    await advanceCheckpoint(tx, { claim, from: batch.after, to: batch.upTo, events, rows: 0, busyMs: 0 });
    const discarded = leftOut.discards.get(event.position) ?? none;
    const upserted: string[] = [];
    const deleted: string[] = [];
    const led = await this.#rowsOf(tx, batch, event);
    if (led.keys === null) failures.add(failure);
    for (const [text, key] of led.keys ?? []) {
      if (discarded === 'all' || discarded.has(text)) continue;
      if (leftOut.blocked.has(text)) failures.add({ event, key, error: null });
      else if (led.fails) failures.add({ ...failure, key });
      else {
        try {
          const one = { ...batch, choice: { only: [text] } };
          const merged = await savepoint(tx, () => merge.run(tx, one, { keys: true }));
          upserted.push(...merged.upserted);
          deleted.push(...merged.deleted);
        } catch (error) {
          if (!this.#isFailure(error)) throw error;
          failures.add({ event, key, error: this.#failed(event, error) });
        }
      }
    }
    const [rows, busyMs] = [upserted.length + deleted.length, Math.round(performance.now() - since)];
    await addWork(tx, claim, { events: 0, rows, busyMs });
    await this.#publish(tx, event.position, keys ? { upserted, deleted, failures } : { failures });
  }

  /** The rows of this processor that an event leads to. */
  async #rowsOf(tx: Queryable, batch: SqlBatch, event: RecordedEvent): Promise<RowsOfEvent> {
    const { merge, projection } = this.#options;
    const works = await this.#attempt(tx, () => merge.evaluate(tx, batch).then(() => true));
    // The keys may be known even if other columns can't be computed.
    const led = await this.#attempt(tx, () => merge.rowsOfEach(tx, batch));
    const keys = led?.map(({ key }) => key) ?? declaredKeys(projection, event);
    const own = keys.map((key) => [keyText(key), key] as const).filter(([text]) => this.#isOwn(text, event.position));
    return { keys: keys.length === 0 && !works ? null : new Map(own), fails: !works };
  }

  /** @returns undefined if it fails because of the event */
  async #attempt<T>(tx: Queryable, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await savepoint(tx, work);
    } catch (error) {
      if (!this.#isFailure(error)) throw error;
      return undefined;
    }
  }

  /** Writes what belongs to the rows of a part: the events left out of them, and the list of changed keys. */
  async #publish(tx: Queryable, to: GlobalPosition, part: WrittenPart): Promise<void> {
    const { claim, projection } = this.#options;
    const { upserted = [], deleted = [], failures } = part;
    const { letters, skipped } = failures;
    if (letters.length > 0) await insertDeadLetters(tx, projection, letters);
    if (skipped.length > 0) await recordSkips(tx, claim, projection.tableName, skipped);
    if (upserted.length + deleted.length > 0)
      await insertChanges(tx, claim, to, `[${upserted.join(',')}]`, `[${deleted.join(',')}]`);
    // Before the commit, and not for rows that were refused.
    for (const failure of skipped) await callOnSkip(projection, failure);
  }

  /** Whether subscribers get the changed keys. The owner of another partition may have completed the version meanwhile. */
  async #publishes(tx: Queryable, { state }: Writing): Promise<boolean> {
    const { claim } = this.#options;
    const now = state === 'building' && claim.partitions > 1 ? await shareState(tx, claim) : state;
    return (now ?? state) !== 'building';
  }

  #settle(to: GlobalPosition, failures: UnwrittenFailures, writing: Writing): void {
    this.#written = to;
    for (const { key } of failures.letters) if (key !== null) this.#leftOut?.blocked.add(key);
    writing.written(to, failures);
  }

  async #batch(after: GlobalPosition, upTo: GlobalPosition): Promise<SqlBatch> {
    const { log, merge, claim } = this.#options;
    const upcast = await upcastEvents(log, merge.upcast, after, upTo, this.#upcast);
    return { after, upTo, upcast: upcast.events, counted: { partition: claim.partition, of: claim.partitions } };
  }

  /** The rows that this processor folds after a position: those of its partition, unless they were folded under an earlier number of partitions. */
  #own(after: GlobalPosition): RowChoice {
    const { partition, partitions, floors } = this.#options.claim;
    return {
      ...(partitions === 1 ? {} : { within: [{ of: partitions, partitions: [partition] }] }),
      without: reachedShares(floors, after + 1n),
    };
  }

  #isOwn(text: string, position: bigint): boolean {
    const { partition, partitions, floors } = this.#options.claim;
    return partitionOf(text, partitions) === partition && position > floorOf(text, floors);
  }

  #isFailure(error: unknown): boolean {
    return isSqlEventFailure(this.#options.projection, error);
  }

  #failed(event: RecordedEvent, error: unknown): FoldFailure['error'] {
    const { projection } = this.#options;
    return isEvolveFailure(error) ? error : sqlFoldFailed(projection, event, refusalOf(projection, error));
  }
}

interface Around {
  readonly batch: SqlBatch;
  readonly failure: FoldFailure;
  readonly failures: UnwrittenFailures;
  readonly writing: Writing;
  readonly leftOut: LeftOut;
}

interface RowsOfEvent {
  /** Null if no key is known. */
  readonly keys: ReadonlyMap<string, RowKey> | null;
  /** Whether the SQL fails on the event, so that no row of it can be computed. */
  readonly fails: boolean;
}

interface WrittenPart {
  /** Absent if nobody gets the changed keys. */
  readonly upserted?: readonly string[];
  readonly deleted?: readonly string[];
  readonly failures: UnwrittenFailures;
}

const none: ReadonlySet<string> = new Set();

/** The keys of an event's rows by the declared `key`; none if it fails or is not declared. */
function declaredKeys(projection: Projection, event: RecordedEvent): readonly RowKey[] {
  if (isVersionUnknown(unreadable(event))) return [];
  try {
    return projection.keysOf(event);
  } catch {
    return [];
  }
}

/** Each event is counted by one of the partitions. */
function isCounted({ partition, partitions }: ProcessorClaim, position: bigint): boolean {
  return position % BigInt(partitions) === BigInt(partition);
}
