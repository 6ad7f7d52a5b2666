import { sql } from 'kysely';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { storedText } from '../../thrown.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

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
  /** The number of events whose handlers wait, for a time or for another event. Without dead letters. */
  readonly waiting: number;
  /** When the next of these waits is over at the latest; null if all of them wait without end. */
  readonly nextDue: string | null;
}

const registeredReactors = (upTo: number | null) =>
  refoldTables
    .selectFrom('refold.reactors')
    .select([
      'name',
      'checkpoint',
      'owner',
      'status',
      'error',
      'paused',
      'events_handled as eventsHandled',
      'events_skipped as eventsSkipped',
      sql<number>`(
      select count(*)::integer
      from (select from refold.reactor_letters where reactor = name limit ${upTo}) as letter
    )`.as('deadLetters'),
      sql<number>`(
      select count(*)::integer
      from (
        select
        from refold.reactor_instances as instance
        where reactor = name
          and not exists (
            select from refold.reactor_letters as letter
            where letter.reactor = name and letter.position = instance.position
          )
        limit ${upTo}
      ) as waiting
    )`.as('waiting'),
      sql<string | null>`(select min(due) from refold.reactor_instances where reactor = name and not woken)`.as(
        'nextDue',
      ),
    ])
    .orderBy('name');

/** All reactors, by name. Their dead letters and waiting events are counted up to `upTo`. @default all */
export async function readReactors(db: Queryable, upTo: number | null = null): Promise<RegisteredReactor[]> {
  return run(db, registeredReactors(upTo), 'read reactors');
}

export interface RunnableReactor {
  readonly name: string;
  readonly generation: number;
  /** The keys of dead letters that an operator wants to retry or discard. */
  readonly requestedKeys: readonly string[];
}

const runnableReactors = refoldTables
  .selectFrom('refold.reactors')
  .select(['name', 'generation'])
  .select(
    sql<string[]>`array(
      select distinct key from refold.reactor_letters where reactor = name and requested is not null
    )`.as('requestedKeys'),
  )
  .where('paused', 'is', false);

/** The reactors that are not paused, with pending requests. */
export async function readRunnableReactors(db: Queryable): Promise<RunnableReactor[]> {
  return run(db, runnableReactors, 'read runnable reactors');
}

/** Adds a reactor unless it exists. Returns whether it was added. */
export async function insertReactor(db: Queryable, name: string, checkpoint: GlobalPosition): Promise<boolean> {
  const added = await run(
    db,
    refoldTables
      .insertInto('refold.reactors')
      .values({ name, checkpoint })
      .onConflict((same) => same.doNothing())
      .returning('name'),
  );
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

/** A CTE that counts an event for the reactor's owner: $1 is the reactor, $2 the epoch, $4 what became of the event. Empty for a former owner. */
export const countingOwner = `owner as (
        update refold.reactors
        set
          events_handled = events_handled + case $4 when 'handled' then 1 else 0 end,
          events_skipped = events_skipped + case $4 when 'skipped' then 1 else 0 end,
          updated_at = now()
        where name = $1 and epoch = $2
        returning name
      )`;

export function reactorFenced(name: string, epoch: bigint): RefoldError {
  const message = `${name}: another owner has taken over, or an operator has moved its position (epoch ${epoch} is outdated).`;
  return new RefoldError('PROCESSOR_FENCED', message, { name });
}

export type LockedReactor = Pick<RegisteredReactor, 'checkpoint' | 'paused' | 'owner' | 'status'>;

/** Reads a reactor's row and locks it until the transaction ends. */
export async function lockReactor(db: Queryable, name: string): Promise<LockedReactor | undefined> {
  const [locked] = await run(
    db,
    refoldTables
      .selectFrom('refold.reactors')
      .select(['checkpoint', 'paused', 'owner', 'status'])
      .where('name', '=', name)
      .forUpdate(),
  );
  return locked;
}

/** Pauses or resumes a locked reactor. Its owner releases it in an orderly way. */
export async function setReactorPaused(db: Queryable, name: string, paused: boolean): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.reactors')
      .set({
        paused,
        generation: sql`generation + 1`,
        status: sql`case status when 'stopped' then 'idle' else status end`,
        error: null,
        updated_at: sql`now()`,
      })
      .where('name', '=', name),
  );
}

/** Without an owner, in an epoch of its own: what the former owner sends is refused. */
const fenced = {
  epoch: sql<bigint>`epoch + 1`,
  generation: sql<number>`generation + 1`,
  owner: null,
  status: 'idle' as const,
  error: null,
  updated_at: sql<string>`now()`,
};

/** Sets the position of a locked reactor. Its owner is fenced, and the next owner starts there. */
export async function setReactorCheckpoint(db: Queryable, name: string, checkpoint: GlobalPosition): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.reactors')
      .set({
        checkpoint,
        anchor: null,
        awaits: [], // the next owner stores the awaited events that were skipped, and those of another history
        ...fenced,
      })
      .where('name', '=', name),
  );
}

/** Fences the owner of a locked reactor. The next owner starts from the rows. A reactor that stopped starts again. */
export async function restartReactor(db: Queryable, name: string): Promise<void> {
  await run(db, refoldTables.updateTable('refold.reactors').set(fenced).where('name', '=', name));
}

/** Deletes a locked reactor with its dead letters and waiting events. The audit log stays. */
export async function deleteReactor(db: Queryable, name: string): Promise<void> {
  await run(db, refoldTables.deleteFrom('refold.reactors').where('name', '=', name));
}

export interface ReactorOperation {
  readonly reactor: string;
  readonly operation:
    | 'declared'
    | 'paused'
    | 'resumed'
    | 'rewound'
    | 'skipped ahead'
    | 'letters retried'
    | 'letters discarded'
    | 'cancelled'
    | 'version begun'
    | 'version withdrawn'
    | 'forgotten';
  readonly from: GlobalPosition | null;
  readonly to: GlobalPosition;
  readonly actor: string;
  readonly reason: string;
}

/** Records an operation in the audit log. */
export async function insertReactorOperation(db: Queryable, given: ReactorOperation): Promise<void> {
  await run(
    db,
    refoldTables.insertInto('refold.reactor_operations').values({
      reactor: given.reactor,
      operation: given.operation,
      from_position: given.from,
      to_position: given.to,
      actor: given.actor,
      reason: storedText(given.reason),
    }),
  );
}

/** The audit log of a reactor, newest first. */
export async function readReactorOperations(
  db: Queryable,
  name: string,
): Promise<(ReactorOperation & { readonly at: string })[]> {
  return run(
    db,
    refoldTables
      .selectFrom('refold.reactor_operations')
      .select(['reactor', 'operation', 'from_position as from', 'to_position as to', 'actor', 'reason', 'at'])
      .where('reactor', '=', name)
      .orderBy('id', 'desc'),
  );
}
