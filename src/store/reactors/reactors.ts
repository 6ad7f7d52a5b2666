import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../postgres/statement.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';

/** A reactor's row. */
export interface RegisteredReactor {
  readonly name: string;
  readonly checkpoint: GlobalPosition;
  readonly owner: string | null;
  readonly status: 'idle' | 'running' | 'stopped';
  readonly error: { readonly message: string; readonly at: string } | null;
  readonly paused: boolean;
  readonly eventsHandled: bigint;
  readonly eventsSkipped: bigint;
  /** The number of events that failed finally, and of events that wait behind them. */
  readonly deadLetters: number;
}

/** All reactors, by name. */
export async function readReactors(db: Queryable): Promise<RegisteredReactor[]> {
  return db.query<RegisteredReactor>({
    name: 'read reactors',
    text: `
      select
        name,
        checkpoint,
        owner,
        status,
        error,
        paused,
        events_handled as "eventsHandled",
        events_skipped as "eventsSkipped",
        (select count(*)::integer from refold.reactor_letters where reactor = name) as "deadLetters"
      from refold.reactors
      order by name`,
  });
}

export interface RunnableReactor {
  readonly name: string;
  readonly generation: number;
  /** The keys of dead letters that an operator wants to retry or discard. */
  readonly requestedKeys: readonly string[];
}

/** The reactors that are not paused, with pending requests. */
export async function readRunnableReactors(db: Queryable): Promise<RunnableReactor[]> {
  return db.query<RunnableReactor>({
    name: 'read runnable reactors',
    text: `
      select
        name,
        generation,
        array(select distinct key from refold.reactor_letters where reactor = name and requested is not null) as "requestedKeys"
      from refold.reactors
      where not paused`,
  });
}

/** Adds a reactor unless it exists. Returns whether it was added. */
export async function insertReactor(db: Queryable, name: string, checkpoint: GlobalPosition): Promise<boolean> {
  const added = await db.query({
    text: `
      insert into refold.reactors (name, checkpoint)
      values ($1, $2)
      on conflict do nothing
      returning name`,
    values: [name, checkpoint],
  });
  return added.length > 0;
}

export interface ReactorAdvance {
  readonly from: GlobalPosition;
  readonly to: GlobalPosition;
  readonly handled: number;
  readonly skipped: number;
}

/** Moves the checkpoint. @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner, or an operator has moved it */
export async function advanceReactor(
  db: Queryable,
  { name, epoch, serverStart }: ProcessorClaim,
  { from, to, handled, skipped }: ReactorAdvance,
): Promise<void> {
  const moved = await db.query({
    name: 'advance reactor',
    text: `
      update refold.reactors
      set
        checkpoint = $4,
        anchor = refold.checkpoint_anchor($4),
        events_handled = events_handled + $5,
        events_skipped = events_skipped + $6,
        updated_at = now()
      where name = $1 and epoch = $2 and checkpoint = $3 and refold.server_start() = $7
      returning name`,
    values: [name, epoch, from, to, handled, skipped, serverStart],
  });
  if (moved.length === 0) throw reactorFenced(name, epoch);
}

export function reactorFenced(name: string, epoch: bigint): RefoldError {
  const message = `${name}: another owner has taken over, or an operator has moved its position (epoch ${epoch} is outdated).`;
  return new RefoldError('PROCESSOR_FENCED', message, { name });
}

export type LockedReactor = Pick<RegisteredReactor, 'checkpoint' | 'paused' | 'owner' | 'status'>;

/** Reads a reactor's row and locks it until the transaction ends. */
export async function lockReactor(db: Queryable, name: string): Promise<LockedReactor | undefined> {
  const rows = await db.query<LockedReactor>({
    text: 'select checkpoint, paused, owner, status from refold.reactors where name = $1 for update',
    values: [name],
  });
  return rows[0];
}

/** Pauses or resumes a locked reactor. Its owner releases it in an orderly way. */
export async function setReactorPaused(db: Queryable, name: string, paused: boolean): Promise<void> {
  await db.query({
    text: `
      update refold.reactors
      set
        paused = $2,
        generation = generation + 1,
        status = case status when 'stopped' then 'idle' else status end,
        error = null,
        updated_at = now()
      where name = $1`,
    values: [name, paused],
  });
}

/** Sets the position of a locked reactor. Its owner is fenced, and the next owner starts there. */
export async function setReactorCheckpoint(db: Queryable, name: string, checkpoint: GlobalPosition): Promise<void> {
  await db.query({
    text: `
      update refold.reactors
      set
        checkpoint = $2,
        anchor = null,
        epoch = epoch + 1,
        generation = generation + 1,
        owner = null,
        status = 'idle',
        error = null,
        updated_at = now()
      where name = $1`,
    values: [name, checkpoint],
  });
}

/** Deletes a locked reactor with its dead letters. The audit log stays. */
export async function deleteReactor(db: Queryable, name: string): Promise<void> {
  await db.query({ text: 'delete from refold.reactors where name = $1', values: [name] });
}

export interface ReactorStep {
  readonly reactor: string;
  readonly step:
    | 'declared'
    | 'paused'
    | 'resumed'
    | 'rewound'
    | 'skipped ahead'
    | 'letters retried'
    | 'letters discarded'
    | 'forgotten';
  readonly from: GlobalPosition | null;
  readonly to: GlobalPosition;
  readonly actor: string;
  readonly reason: string;
}

/** Records an operation in the audit log. */
export async function insertReactorStep(db: Queryable, step: ReactorStep): Promise<void> {
  await db.query({
    text: `
      insert into refold.reactor_steps (reactor, step, from_position, to_position, actor, reason)
      values ($1, $2, $3, $4, $5, $6)`,
    values: [step.reactor, step.step, step.from, step.to, step.actor, step.reason],
  });
}

/** The audit log of a reactor, newest first. */
export async function readReactorSteps(
  db: Queryable,
  name: string,
): Promise<(ReactorStep & { readonly at: string })[]> {
  return db.query<ReactorStep & { readonly at: string }>({
    text: `
      select reactor, step, from_position as "from", to_position as "to", actor, reason, at
      from refold.reactor_steps
      where reactor = $1
      order by id desc`,
    values: [name],
  });
}
