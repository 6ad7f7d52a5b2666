import type { GlobalPosition } from '../../events/global-position.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Matches the index `append_keys_of_steps` of migration 0001. A step's key is `command:reactor/event/step`; other keys have another form. */
const isStepKey = `not coalesce(result ? 'input', false) and key like '%:%/________-____-____-____-____________/%'`;

/**
 * Deletes old outcomes of workflow steps, at most `atMost`. Only for events that the reactor has finished: it may run the steps of pending
 * events, of waiting events and of dead letters again. Returns how many it deleted. The transaction must have locked the reactor's row.
 */
export async function pruneStepKeys(tx: Queryable, reactor: string, days: number, atMost: number): Promise<number> {
  const [row] = await tx.query<{ forgotten: number }>({
    name: 'refold_prune_step_keys',
    text: `
      -- Steps run after their event is recorded. The day allows for clocks that were set back in between.
      with bound as (
        select least(
          now() - make_interval(days => $2),
          (
            select event.recorded_at
            from refold.events as event
            where event.position > least(
              reactor.checkpoint,
              (select min(letter.position) - 1 from refold.reactor_letters as letter where letter.reactor = reactor.name),
              (select min(instance.position) - 1 from refold.reactor_instances as instance where instance.reactor = reactor.name)
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
      ), kept as (
        -- Events at neighbouring positions may be recorded in any order, within seconds.
        update refold.reactors
        set steps_kept_since = greatest(steps_kept_since, (select max(recorded_at) + interval '1 hour' from forgotten))
        where name = $1 and exists (select from forgotten)
      )
      select count(*)::int as forgotten from forgotten`,
    values: [reactor, days, atMost],
  });
  return row?.forgotten ?? 0;
}

/**
 * If some steps that a replay from this position would run again have lost their outcomes: the time since which all outcomes are kept. Else
 * undefined.
 */
export async function stepsForgottenAfter(
  tx: Queryable,
  reactor: string,
  position: GlobalPosition,
): Promise<string | undefined> {
  const [row] = await run(
    tx,
    refoldTables
      .selectFrom('refold.reactors')
      .select('steps_kept_since as since')
      .where('name', '=', reactor)
      .where('steps_kept_since', '>', ({ selectFrom }) =>
        selectFrom('refold.events').select('recorded_at').where('position', '>', position).orderBy('position').limit(1),
      ),
  );
  return row?.since ?? undefined;
}
