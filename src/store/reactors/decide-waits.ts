import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';
import { storedKey } from './awaited-events.ts';

/** Which waits to decide. */
export type WaitScope =
  /** The one of this event: by an awaited event, or because its time has passed already. */
  | { readonly kind: 'event'; readonly position: GlobalPosition }
  /** Those for events of these keys, by awaited events. */
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  /** All of them, by awaited events. */
  | { readonly kind: 'all' }
  /** Those for a time that has passed. */
  | { readonly kind: 'times' }
  /**
   * Those for events of these types whose timeout was over at that time, by an awaited event or by the timeout. Every event that was recorded up
   * to that time must be stored.
   */
  | { readonly kind: 'timeouts'; readonly asOf: string; readonly types: readonly string[] };

/** An event whose handler has to run again. */
export interface WokenInstance {
  readonly position: GlobalPosition;
  readonly key: string;
  /** Only a retry of the dead letter runs the handler again. */
  readonly isDeadLetter: boolean;
}

/** The most waits that one statement decides because of their time. */
export const decidedAtOnce = 1000;

/**
 * Decides waits once and for all: stores their outcomes under the keys of their steps. An awaited event decides a wait if it was recorded at or
 * before the due time: the first one after the event that is handled which the handler has not received yet. If the reactor has another owner,
 * nothing is decided.
 */
export async function decideWaits(
  db: Queryable,
  { name, epoch }: ProcessorClaim,
  scope: WaitScope,
): Promise<WokenInstance[]> {
  const { condition, isOver, value } = conditions[scope.kind](scope as never); // each kind has its own scope
  return db.query<WokenInstance>({
    name: `decide waits: ${scope.kind}`,
    text: `
      with owner as (
        select name from refold.reactors where name = $1 and epoch = $2 for share
      ), found as (
        select instance.position, instance.step, awaited.position as event_position, awaited.event_id
        from refold.reactor_instances as instance
        left join lateral (
          select awaited.position, awaited.event_id
          from refold.awaited_events as awaited
          join refold.events as event on event.position = awaited.position and event.id = awaited.event_id
          where awaited.reactor = instance.reactor
            and awaited.key = instance.awaited_key
            and awaited.type = any (instance.types)
            and awaited.position > instance.position
            and awaited.position <> all (instance.received)
            and (instance.due is null or event.recorded_at <= instance.due)
          order by awaited.position
          limit 1
        ) as awaited on true
        where instance.reactor = $1
          and not instance.woken
          and ${condition}
          and (awaited.position is not null or ${isOver})
        order by instance.due
        limit ${scope.kind === 'times' || scope.kind === 'timeouts' ? decidedAtOnce : 'all'}
      ), decided as (
        -- The step is compared because the handler may have gone on to another wait meanwhile.
        update refold.reactor_instances as instance
        set woken = true
        from owner, found
        where instance.reactor = owner.name
          and instance.position = found.position
          and instance.step = found.step
          and not instance.woken
        returning
          instance.position, instance.key, instance.event_id as handled_id, instance.step, instance.work,
          found.event_position, found.event_id
      ), kept as (
        -- Only a client that has guessed the key can have used it before.
        insert into refold.append_keys as stored (key, result)
        select
          ':' || $1 || '/' || handled_id || '/' || step,
          jsonb_build_object(
            'recordedAt', clock_timestamp(),
            'streams', '[]'::jsonb,
            'positions', '[]'::jsonb,
            'step', work,
            'outcome', case
              when event_position is null then jsonb_build_object('kind', 'over')
              else jsonb_build_object('kind', 'event', 'position', event_position::text, 'id', event_id)
            end
          )
        from decided
        on conflict (key) do update
        set result = excluded.result
        where stored.result ? 'input'
      )
      select
        position,
        key,
        exists (
          select from refold.reactor_letters as letter where letter.reactor = $1 and letter.position = decided.position
        ) as "isDeadLetter"
      from decided`,
    values: [name, epoch, ...value],
  });
}

interface ScopeSql {
  readonly condition: string;
  /** Whether a wait without an event is decided, too. */
  readonly isOver: string;
  readonly value: readonly unknown[];
}

const conditions: { readonly [Kind in WaitScope['kind']]: (scope: WaitScope & { kind: Kind }) => ScopeSql } = {
  event: ({ position }) => ({
    condition: 'instance.position = $3',
    isOver: `(instance.types = '{}' and instance.due <= clock_timestamp())`,
    value: [position],
  }),
  keys: ({ keys }) => ({
    condition: 'instance.awaited_key = any ($3::text[])',
    isOver: 'false',
    value: [keys.map(storedKey)],
  }),
  all: () => ({ condition: 'true', isOver: 'false', value: [] }),
  times: () => ({
    condition: `instance.types = '{}' and instance.due <= (select clock_timestamp())`,
    isOver: 'true',
    value: [],
  }),
  timeouts: ({ asOf, types }) => ({
    condition: `instance.types <> '{}' and instance.types <@ $4::text[] and instance.due <= $3::timestamptz`,
    isOver: 'true',
    value: [asOf, types],
  }),
};

/** The waits whose time has come, by the database's clock. */
export interface DueWaits {
  readonly asOf: string;
  /** Whether the time of a wait has passed that waits for nothing else. */
  readonly times: boolean;
  /** Whether the timeout of a wait for an event of the types is over. */
  readonly timeouts: boolean;
  /** Milliseconds until the next due time; null if there is none. */
  readonly next: number | null;
}

/** @param types the awaited types that the caller stores the events of */
export async function readDueWaits(db: Queryable, reactor: string, types: readonly string[]): Promise<DueWaits> {
  const rows = await db.query<DueWaits>({
    name: 'read due waits',
    text: `
      with clock as materialized (
        select clock_timestamp() as now
      )
      select
        clock.now::text as "asOf",
        exists (
          select from refold.reactor_instances
          where reactor = $1 and not woken and due <= clock.now and types = '{}'
        ) as times,
        exists (
          select from refold.reactor_instances
          where reactor = $1 and not woken and due <= clock.now and types <> '{}' and types <@ $2::text[]
        ) as timeouts,
        (
          select extract(epoch from min(due) - clock.now)::float8 * 1000
          from refold.reactor_instances
          where reactor = $1 and not woken and due > clock.now
        ) as next
      from clock`,
    values: [reactor, types],
  });
  return onlyRow(rows);
}

/**
 * Whether every transaction has ended that has begun to write events while the log ended at or before the position. Read the log's end *after*
 * this: it is then at or past the events that were recorded before the position was read.
 */
export async function haveWritersEnded(db: Queryable, position: GlobalPosition): Promise<boolean> {
  const rows = await db.query<{ ended: boolean }>({
    name: 'have writers ended',
    text: 'select not exists (select from refold.tags where tag <= $1) as ended',
    values: [position],
  });
  return onlyRow(rows).ended;
}
