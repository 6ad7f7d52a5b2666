import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { type ColumnsOf, onlyRow, type Queryable, refoldTables, run } from '../statements/statement.ts';
import { storedKey } from './awaited-events.ts';
import { countingOwner, reactorFenced } from './reactors.ts';

/** The outcome of a wait. */
export type WaitOutcome =
  | { readonly kind: 'event'; readonly position: string; readonly id: string }
  /** The time has come, or the timeout is over. */
  | { readonly kind: 'over' };

/** A wait of a handler. */
export interface Wait {
  /** The key of its outcome among the keys of appends, which ends with its name. */
  readonly stepKey: string;
  readonly step: string;
  /** The fingerprint of its input, as `stepWorkText` returns it. */
  readonly work: string;
  /** The types of the event that it waits for; none if it waits for a time. */
  readonly types: readonly string[];
  readonly key: string;
  /** The time until which it waits. */
  readonly until: string | null;
  /** Or the milliseconds from now on. */
  readonly timeout: number | null;
  /** The awaited events that the handler has received already. */
  readonly received: readonly GlobalPosition[];
}

/** What is stored of a wait: its outcome, or that it is under way. */
export interface FoundWait {
  /** Null if the outcome is of a step that ran before steps had fingerprints, or if nothing is stored. */
  readonly work: string | null;
  readonly outcome: WaitOutcome | null;
  readonly isStored: boolean;
}

/** A result with an `input` belongs to a client that has guessed the key. */
export async function findWait(
  db: Queryable,
  { name }: ProcessorClaim,
  { position }: RecordedEvent,
  { stepKey, step }: Wait,
): Promise<FoundWait> {
  const rows = await db.query<FoundWait>({
    name: 'find wait',
    text: `
      select
        coalesce(decided.result ->> 'step', pending.work) as work,
        decided.result -> 'outcome' as outcome,
        decided.result is not null or pending.work is not null as "isStored"
      from (values (1)) as one (row)
      left join refold.append_keys as decided on decided.key = $1 and not decided.result ? 'input'
      left join refold.reactor_instances as pending
        on pending.reactor = $2 and pending.position = $3 and pending.step = $4`,
    values: [stepKey, name, position, step],
  });
  return onlyRow(rows);
}

/**
 * Stores that a handler waits. A wait that is stored already keeps its due time. Returns the milliseconds until the due time of a new wait; null
 * if it has none.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner.
 */
export async function storeWait(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  event: RecordedEvent,
  key: string,
  wait: Wait,
): Promise<number | null> {
  const rows = await db.query<{ due: number | null }>({
    name: 'store wait',
    text: `
      with owner as (
        select name from refold.reactors where name = $1 and epoch = $2 for share
      ), stored as (
        insert into refold.reactor_instances as stored
          (reactor, position, event_id, event_type, stream_id, key, step, work, types, awaited_key, received, due)
        select
          name, $3::bigint, $4::uuid, $5, $6, $7, $8, $9, $10::text[], $11, $12::bigint[],
          coalesce($13::timestamptz, clock_timestamp() + make_interval(secs => $14::float8 / 1000))
        from owner
        on conflict (reactor, position) do update
        set
          step = excluded.step,
          work = excluded.work,
          types = excluded.types,
          awaited_key = excluded.awaited_key,
          received = excluded.received,
          due = case when stored.step = excluded.step then stored.due else excluded.due end,
          since = case when stored.step = excluded.step then stored.since else excluded.since end,
          woken = false
        where stored.step <> excluded.step or stored.woken
        returning due
      )
      select extract(epoch from stored.due - clock_timestamp())::float8 * 1000 as due
      from owner
      left join stored on true`,
    values: [
      ...[name, epoch, event.position, event.id, event.type, event.streamId, key],
      ...[wait.step, wait.work, wait.types, storedKey(wait.key), wait.received, wait.until, wait.timeout],
    ],
  });
  const [stored] = rows;
  if (!stored) throw reactorFenced(name, epoch);
  return stored.due;
}

export type StoredInstance = ColumnsOf<'refold.reactor_instances', 'position' | 'key' | 'woken'>;

/**
 * The events that the reactor handles next, or that the log delivers to it again: those whose wait has its outcome, and those above the
 * checkpoint. Without dead letters.
 */
export async function readInstancesToRun(
  db: Queryable,
  { name, checkpoint }: ProcessorClaim,
): Promise<StoredInstance[]> {
  return db.query<StoredInstance>({
    text: `
      select position, key, woken
      from refold.reactor_instances as instance
      where reactor = $1
        and (woken or position > $2)
        and not exists (
          select from refold.reactor_letters as letter
          where letter.reactor = instance.reactor and letter.position = instance.position
        )
      order by position`,
    values: [name, checkpoint],
  });
}

/** The id of a waiting event, and whether its wait has an outcome; undefined if it does not wait, or if it is a dead letter. */
export async function readInstance(
  db: Queryable,
  { name }: ProcessorClaim,
  position: GlobalPosition,
): Promise<ColumnsOf<'refold.reactor_instances', 'event_id' | 'key' | 'woken'> | undefined> {
  const [found] = await db.query<ColumnsOf<'refold.reactor_instances', 'event_id' | 'key' | 'woken'>>({
    name: 'read instance',
    text: `
      select event_id as "eventId", key, woken
      from refold.reactor_instances
      where reactor = $1
        and position = $2
        and not exists (select from refold.reactor_letters as letter where letter.reactor = $1 and letter.position = $2)`,
    values: [name, position],
  });
  return found;
}

/** Deletes the waiting event, whose handler has ended, and counts it unless it is gone from the log. @throws RefoldError `PROCESSOR_FENCED` */
export async function finishInstance(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  position: GlobalPosition,
  as: 'handled' | 'skipped' | 'gone',
): Promise<void> {
  const owner = await db.query({
    name: 'finish instance',
    text: `
      with ${countingOwner}, finished as (
        delete from refold.reactor_instances using owner where reactor = owner.name and position = $3
      )
      select from owner`,
    values: [name, epoch, position, as],
  });
  if (owner.length === 0) throw reactorFenced(name, epoch);
}

/** An event whose handler waits, as operators see it. */
export interface WaitingEvent {
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  readonly key: string;
  /** The name of the wait. */
  readonly step: string;
  /** The types and the key of the event that it waits for; no types if it waits for a time. */
  readonly awaits: readonly string[];
  readonly awaitedKey: string;
  readonly since: string;
  /** Null if it waits without end. */
  readonly due: string | null;
  /** Whether the wait is over, so the handler runs next. */
  readonly isWoken: boolean;
}

/** The waiting events of a reactor in log order, at most `atMost`. Without dead letters. */
export async function readWaitingEvents(db: Queryable, reactor: string, atMost: number): Promise<WaitingEvent[]> {
  return run(
    db,
    refoldTables
      .selectFrom('refold.reactor_instances')
      .select(['position', 'event_type as type', 'stream_id as streamId', 'key', 'step', 'types as awaits'])
      .select(['awaited_key as awaitedKey', 'since', 'due', 'woken as isWoken'])
      .where('reactor', '=', reactor)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('refold.reactor_letters as letter')
              .whereRef('letter.reactor', '=', 'refold.reactor_instances.reactor')
              .whereRef('letter.position', '=', 'refold.reactor_instances.position'),
          ),
        ),
      )
      .orderBy('position')
      .limit(atMost),
  );
}

/** Deletes the waiting events in (after, upTo]. Returns how many. The transaction must have locked the reactor's row. */
export async function deleteInstances(
  tx: Queryable,
  reactor: string,
  after: GlobalPosition,
  upTo: GlobalPosition,
): Promise<number> {
  const gone = await run(
    tx,
    refoldTables
      .deleteFrom('refold.reactor_instances')
      .where('reactor', '=', reactor)
      .where('position', '>', after)
      .where('position', '<=', upTo)
      .returning('position'),
  );
  return gone.length;
}

/** The handlers of the waiting events after a position run again from their start. The transaction must have locked the reactor's row. */
export async function wakeInstances(tx: Queryable, reactor: string, after: GlobalPosition): Promise<void> {
  await run(
    tx,
    refoldTables
      .updateTable('refold.reactor_instances')
      .set({ woken: true })
      .where('reactor', '=', reactor)
      .where('position', '>', after),
  );
}
