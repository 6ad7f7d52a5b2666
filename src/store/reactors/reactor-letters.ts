import { sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { LetterError } from '../statements/stored-json.ts';
import { countingOwner, reactorFenced } from './reactors.ts';

/** A dead letter of a reactor: an event that failed finally, or that waits behind one of the same key. */
export interface ReactorLetter {
  readonly position: GlobalPosition;
  readonly key: string;
  readonly type: string;
  readonly streamId: string;
  /** Null if the event waits behind an earlier one of its key. */
  readonly error: LetterError | null;
  /** The number of attempts. */
  readonly attempts: number;
  /** An operator's request that the owner has not carried out yet. */
  readonly requested: 'retry' | 'discard' | null;
  readonly at: string;
}

export type NewReactorLetter = Pick<ReactorLetter, 'position' | 'key' | 'type' | 'streamId' | 'error' | 'attempts'>;

/**
 * Inserts a dead letter. If a crash made the event be processed again, the existing letter stays.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner.
 */
export async function insertReactorLetter(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  { position, key, type, streamId, error, attempts }: NewReactorLetter,
): Promise<void> {
  const owner = await db.query({
    name: 'insert reactor letter',
    text: `
      with owner as (
        select name from refold.reactors where name = $1 and epoch = $2 for share
      ), kept as (
        insert into refold.reactor_letters (reactor, position, key, event_type, stream_id, error, attempts)
        select name, $3, $4, $5, $6, $7::jsonb, $8 from owner
        on conflict do nothing
      )
      select from owner`,
    values: [name, epoch, position, key, type, streamId, error && JSON.stringify(error), attempts],
  });
  if (owner.length === 0) throw reactorFenced(name, epoch);
}

/** For each key with dead letters, the position of the first one. */
export async function readBlockedKeys(db: Queryable, reactor: string): Promise<Map<string, GlobalPosition>> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.reactor_letters')
      .select(({ fn }) => ['key', fn.min('position').as('first')])
      .where('reactor', '=', reactor)
      .groupBy('key'),
  );
  return new Map(rows.map(({ key, first }) => [key, first]));
}

/** The dead letters of a reactor in log order; only those of one key if it is given. */
export async function readReactorLetters(db: Queryable, reactor: string, key?: string): Promise<ReactorLetter[]> {
  return run(db, lettersOf(reactor, key));
}

/** A dead letter with its row version. An operator's request in the meantime changes the row version. */
export interface ReadLetter extends ReactorLetter {
  readonly rowVersion: string;
}

/** The dead letters of a key in log order, for {@link keepReactorLetter}. */
export async function readLettersOfKey(db: Queryable, reactor: string, key: string): Promise<ReadLetter[]> {
  return run(db, lettersOf(reactor, key).select(sql<string>`xmin::text`.as('rowVersion')));
}

function lettersOf(reactor: string, key: string | undefined) {
  const letters = refoldTables
    .selectFrom('refold.reactor_letters')
    .select(['position', 'key', 'event_type as type', 'stream_id as streamId', 'error', 'attempts', 'requested', 'at'])
    .where('reactor', '=', reactor)
    .orderBy('position');
  return key === undefined ? letters : letters.where('key', '=', key);
}

/** Requests the owner to retry or discard dead letters: those of a key, those at positions, or all. Returns how many. */
export async function requestReactorLetters(
  db: Queryable,
  reactor: string,
  which: string | readonly GlobalPosition[] | undefined,
  requested: 'retry' | 'discard',
): Promise<number> {
  const letters = refoldTables
    .updateTable('refold.reactor_letters')
    .set({ requested })
    .where('reactor', '=', reactor)
    .returning('position');
  const chosen =
    which === undefined
      ? letters
      : typeof which === 'string'
        ? letters.where('key', '=', which)
        : letters.where('position', '=', ({ fn, val }) => fn.any(val(which)));
  return (await run(db, chosen)).length;
}

/**
 * Deletes a dead letter, and counts it if it was handled or skipped. Deletes its stored wait too, unless its handler waits.
 *
 * @throws RefoldError `PROCESSOR_FENCED`
 */
export async function deleteReactorLetter(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  position: GlobalPosition,
  as: 'handled' | 'skipped' | 'discarded' | 'waiting',
): Promise<void> {
  const owner = await db.query({
    name: 'delete reactor letter',
    text: `
      with ${countingOwner}, gone as (
        delete from refold.reactor_letters using owner where reactor = owner.name and position = $3
      ), finished as (
        delete from refold.reactor_instances using owner where reactor = owner.name and position = $3 and $4 <> 'waiting'
      )
      select from owner`,
    values: [name, epoch, position, as],
  });
  if (owner.length === 0) throw reactorFenced(name, epoch);
}

/**
 * Records a failed retry: its error, and the number of attempts including it. Clears the requests of the key, except those made since its
 * dead letters were read.
 *
 * @throws RefoldError `PROCESSOR_FENCED`
 */
export async function keepReactorLetter(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  { position, key, error, attempts }: Pick<ReactorLetter, 'position' | 'key' | 'error' | 'attempts'>,
  read: readonly ReadLetter[],
): Promise<void> {
  const owner = await db.query({
    text: `
      with owner as (
        select name from refold.reactors where name = $1 and epoch = $2 for share
      ), kept as (
        update refold.reactor_letters as letter
        set
          requested = case
            when (position, letter.xmin::text) not in (select * from unnest($6::bigint[], $7::text[])) then requested
          end,
          error = case position when $3 then $5::jsonb else error end,
          attempts = case position when $3 then $8 else attempts end,
          at = case position when $3 then now() else at end
        from owner
        where reactor = owner.name and key = $4
      )
      select from owner`,
    values: [
      name,
      epoch,
      position,
      key,
      JSON.stringify(error),
      read.map((letter) => letter.position),
      read.map(({ rowVersion }) => rowVersion),
      attempts,
    ],
  });
  if (owner.length === 0) throw reactorFenced(name, epoch);
}

/** Deletes the dead letters after a position. The reactor will process these events again. */
export async function deleteReactorLettersPast(
  db: Queryable,
  reactor: string,
  position: GlobalPosition,
): Promise<void> {
  await run(
    db,
    refoldTables.deleteFrom('refold.reactor_letters').where('reactor', '=', reactor).where('position', '>', position),
  );
}
