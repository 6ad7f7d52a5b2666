import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { onlyRow, type Queryable, refoldTables, run } from '../statements/statement.ts';
import { reactorFenced } from './reactors.ts';

/** The attempts to handle an event that have not succeeded yet. */
export interface EventAttempts {
  readonly position: GlobalPosition;
  /** Attempts that failed. */
  readonly failed: number;
  /** Attempts during which the process ended, or lost the reactor to another process. */
  readonly lost: number;
  /** Whether an attempt has begun and not ended. */
  readonly running: boolean;
}

/**
 * The stored attempts of events that the reactor has yet to handle, of its dead letters and of waiting events.
 *
 * @param processId the process that reads. An attempt that was running in any other process is lost.
 */
export async function readReactorAttempts(
  db: Queryable,
  { name }: ProcessorClaim,
  processId: string,
): Promise<readonly EventAttempts[]> {
  const rows = await db.query<Omit<EventAttempts, 'running'>>({
    text: `
      select
        position::bigint,
        (event ->> 'failed')::int as failed,
        (event ->> 'lost')::int + case when (event ->> 'running')::boolean and process <> $2 then 1 else 0 end as lost
      from refold.reactor_attempts
      join refold.reactors on name = reactor
      cross join jsonb_each(events) as stored (position, event)
      where reactor = $1
        and (
          position::bigint > checkpoint
          or exists (
            select from refold.reactor_letters as letter
            where letter.reactor = name and letter.position = stored.position::bigint
          )
          or exists (
            select from refold.reactor_instances as instance
            where instance.reactor = name and instance.position = stored.position::bigint
          )
        )`,
    values: [name, processId],
  });
  return rows.map((row) => ({ ...row, running: false }));
}

/**
 * Stores the attempts, unless a later owner has stored any. Not synced to disk: if the server crashes, the last ones may not be counted.
 *
 * @param begun the highest position of an event of which an attempt has begun
 * @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner.
 */
export async function writeReactorAttempts(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  processId: string,
  attempts: Iterable<EventAttempts>,
  begun: GlobalPosition,
): Promise<void> {
  const events = Object.fromEntries([...attempts].map(({ position, ...counts }) => [position, counts]));
  const written = await db.query({
    name: 'write reactor attempts',
    text: `
      insert into refold.reactor_attempts as stored (reactor, epoch, process, events, begun_position)
      select $1::text, $2::bigint, $3::text, $4::jsonb, $5::bigint
      where set_config('synchronous_commit', 'off', true) = 'off'
      on conflict (reactor) do update
      set
        epoch = excluded.epoch,
        process = excluded.process,
        events = excluded.events,
        begun_position = greatest(stored.begun_position, excluded.begun_position)
      where stored.epoch <= excluded.epoch
      returning reactor`,
    values: [name, epoch, processId, JSON.stringify(events), begun],
  });
  if (written.length === 0) throw reactorFenced(name, epoch);
}

/** Forgets the attempts: all events start again with their first. The row stays, because it says how far handlers have run. */
export async function deleteReactorAttempts(db: Queryable, reactor: string): Promise<void> {
  await run(
    db,
    refoldTables.updateTable('refold.reactor_attempts').set({ events: '{}' }).where('reactor', '=', reactor),
  );
}

/**
 * From now on, no attempt begins under an earlier epoch than the reactor has now. Returns the highest position of an event of which an attempt
 * has begun. The transaction must have locked the reactor's row.
 */
export async function fenceReactorAttempts(tx: Queryable, reactor: string): Promise<GlobalPosition> {
  const rows = await tx.query<{ begun: GlobalPosition }>({
    text: `
      insert into refold.reactor_attempts (reactor, epoch, process, events)
      select name, epoch, '', '{}'::jsonb
      from refold.reactors
      where name = $1
      on conflict (reactor) do update
      set epoch = excluded.epoch
      returning begun_position as begun`,
    values: [reactor],
  });
  return onlyRow(rows).begun;
}
