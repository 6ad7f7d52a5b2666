import { createHash } from 'node:crypto';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';
import { reactorFenced } from './reactors.ts';

/** An event that handlers may wait for. */
export interface AwaitedEvent {
  readonly position: GlobalPosition;
  readonly id: string;
  readonly type: string;
  readonly key: string;
}

// An index entry of PostgreSQL holds 2,700 bytes. Longer keys are stored as a hash.
const longestKey = 500;

/** The stored form of a key, of any length. Equal keys have equal forms. */
export function storedKey(key: string): string {
  const isStorable = key.length <= longestKey && !key.includes('\0') && !key.startsWith('sha256:');
  return isStorable ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/**
 * Stores events that handlers may wait for. What is stored already stays. An event that the log does not hold any more is left out.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner.
 */
export async function insertAwaitedEvents(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  events: readonly AwaitedEvent[],
): Promise<void> {
  const owner = await db.query({
    name: 'insert awaited events',
    text: `
      with owner as (
        select name from refold.reactors where name = $1 and epoch = $2 for share
      ), stored as (
        insert into refold.awaited_events as stored (reactor, key, type, position, event_id)
        select owner.name, read.key, read.type, event.position, event.id
        from owner
        cross join unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[]) as read (position, id, type, key)
        join refold.events as event on event.position = read.position and event.id = read.id
        on conflict (reactor, key, type, position) do update
        set event_id = excluded.event_id
        where stored.event_id <> excluded.event_id
      )
      select from owner`,
    values: [
      name,
      epoch,
      events.map(({ position }) => position),
      events.map(({ id }) => id),
      events.map(({ type }) => type),
      events.map(({ key }) => storedKey(key)),
    ],
  });
  if (owner.length === 0) throw reactorFenced(name, epoch);
}

/** What is stored of a reactor's awaited events and waits. */
export interface AwaitingState {
  /** The types whose events up to the checkpoint are stored, as far as a handler may need them. */
  readonly awaits: readonly string[];
  /** The first event up to the checkpoint that a handler may still handle; null if there is none. */
  readonly oldest: GlobalPosition | null;
  /** The types of the events for which handlers wait. */
  readonly awaited: readonly string[];
  readonly hasInstances: boolean;
}

export async function readAwaitingState(db: Queryable, reactor: string): Promise<AwaitingState> {
  const rows = await db.query<AwaitingState>({
    text: `
      select
        awaits,
        least(
          (select min(position) from refold.reactor_instances as instance where instance.reactor = name),
          (select min(position) from refold.reactor_letters as letter where letter.reactor = name)
        ) as oldest,
        array(
          select distinct type
          from refold.reactor_instances as instance
          cross join unnest(instance.types) as type
          where instance.reactor = name and not instance.woken
          order by type
        ) as awaited,
        exists (select from refold.reactor_instances as instance where instance.reactor = name) as "hasInstances"
      from refold.reactors
      where name = $1`,
    values: [reactor],
  });
  return onlyRow(rows);
}

/** Records which types have all their events stored. @throws RefoldError `PROCESSOR_FENCED` */
export async function setAwaits(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  types: readonly string[],
): Promise<void> {
  const set = await db.query({
    text: 'update refold.reactors set awaits = $3 where name = $1 and epoch = $2 returning name',
    values: [name, epoch, types],
  });
  if (set.length === 0) throw reactorFenced(name, epoch);
}

/**
 * Deletes awaited events that no handler can need, at most `atMost`: those before the first event that the reactor has yet to finish. Returns how
 * many. The transaction must have locked the reactor's row.
 */
export async function pruneAwaitedEvents(tx: Queryable, reactor: string, atMost: number): Promise<number> {
  const gone = await tx.query({
    name: 'prune awaited events',
    text: `
      with bound as (
        select least(
          checkpoint,
          (select min(position) from refold.reactor_instances as instance where instance.reactor = name),
          (select min(position) from refold.reactor_letters as letter where letter.reactor = name)
        ) as position
        from refold.reactors
        where name = $1
      )
      delete from refold.awaited_events
      where ctid = any (array(
        select awaited.ctid
        from refold.awaited_events as awaited
        where awaited.reactor = $1 and awaited.position <= (select position from bound)
        order by awaited.position
        limit $2
      ))
      returning position`,
    values: [reactor, atMost],
  });
  return gone.length;
}
