import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../postgres/statement.ts';

/** As the index of migration 0028 has it. A step's key is `command:reactor/event/step`; keys of others have another form. */
const isStepKey = `not coalesce(result ? 'input', false) and key like '%:%/________-____-____-____-____________/%'`;

/**
 * Forgets the outcomes of steps that are older, a few at a time, of events that this reactor has behind it: what it has yet to handle, or keeps as
 * a dead letter, it may hand to its handler again. Tells how many it forgot. For a transaction that has locked the reactor's row.
 */
export async function pruneStepKeys(tx: Queryable, reactor: string, days: number, atMost: number): Promise<number> {
  const [row] = await tx.query<{ forgotten: number }>({
    name: 'refold_prune_step_keys',
    text: `
      -- Steps run after their event is recorded. The day is for clocks that were set back in between.
      with bound as (
        select least(
          now() - make_interval(days => $2),
          (
            select event.recorded_at
            from refold.events as event
            where event.position > least(
              reactor.checkpoint,
              (select min(letter.position) - 1 from refold.reactor_letters as letter where letter.reactor = reactor.name)
            )
            order by event.position
            limit 1
          ) - interval '1 day'
        ) as before
        from refold.reactors as reactor
        where reactor.name = $1
      ), forgotten as (
        delete from refold.append_keys
        where key = any (array(
          select key
          from refold.append_keys
          where ${isStepKey}
            and recorded_at < (select before from bound)
            and split_part(split_part(key, ':', 2), '/', 1) = $1
          limit $3
          for update skip locked
        ))
        returning recorded_at
      ), told as (
        -- Events of neighbouring positions are recorded within seconds, in any order.
        update refold.reactors
        set steps_kept_since = greatest(steps_kept_since, (select max(recorded_at) + interval '1 hour' from forgotten))
        where name = $1 and exists (select from forgotten)
      )
      select count(*)::int as forgotten from forgotten`,
    values: [reactor, days, atMost],
  });
  return row?.forgotten ?? 0;
}

/** Since when the steps of a reactor are all kept, where some of those that it would run again after this position are not. */
export async function stepsForgottenAfter(
  tx: Queryable,
  reactor: string,
  position: GlobalPosition,
): Promise<string | undefined> {
  const [row] = await tx.query<{ since: string }>({
    text: `
      select steps_kept_since as since
      from refold.reactors
      where name = $1
        and steps_kept_since > (
          select recorded_at from refold.events where position > $2 order by position limit 1
        )`,
    values: [reactor, position],
  });
  return row?.since;
}
