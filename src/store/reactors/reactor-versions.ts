import type { GlobalPosition } from '../../events/global-position.ts';
import type { BegunVersion } from '../../reactors/begun-reactor.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** A reactor that began as version 1 has no row for it. */
const begunVersions = `
  select name as reactor, 1 as version, 0::bigint as after_position
  from refold.reactors
  where not exists (select from refold.reactor_versions where reactor = name and from_position = 0)
  union all
  select reactor, version, from_position
  from refold.reactor_versions`;

/** The versions of a reactor and where each has begun, the lowest first. */
export async function readBegunVersions(db: Queryable, reactor: string): Promise<BegunVersion[]> {
  return db.query<BegunVersion>({
    text: `
      select version, after_position as after
      from (${begunVersions}) as begun
      where reactor = $1
      order by version`,
    values: [reactor],
  });
}

/** The events of a version, and how many of them are under way. */
export interface VersionProgress extends BegunVersion {
  readonly reactor: string;
  readonly checkpoint: GlobalPosition;
  /** It handles the events up to this position; null for the newest version. */
  readonly upTo: GlobalPosition | null;
  /** Events past the checkpoint that have begun and not ended, those whose handlers wait, dead letters, and events that wait behind those. */
  readonly underWay: number;
}

/** The versions of all reactors, by name, the lowest first. */
export async function readVersionProgress(db: Queryable, upTo: number | null = null): Promise<VersionProgress[]> {
  return db.query<VersionProgress>({
    name: 'read version progress',
    text: `
      with begun as (
        ${begunVersions}
      ), ranges as (
        select
          reactor,
          version,
          after_position,
          lead(after_position) over (partition by reactor order by version) as up_to_position
        from begun
      )
      select
        reactor,
        checkpoint,
        version,
        after_position as after,
        up_to_position as "upTo",
        (
          select count(*)::integer
          from (
            (
              select position
              from refold.reactor_letters as letter
              where letter.reactor = ranges.reactor
                and letter.position > after_position
                and (up_to_position is null or letter.position <= up_to_position)
              limit $1
            )
            union
            (
              select position
              from refold.reactor_instances as instance
              where instance.reactor = ranges.reactor
                and instance.position > after_position
                and (up_to_position is null or instance.position <= up_to_position)
              limit $1
            )
            union
            select attempted.position::bigint
            from refold.reactor_attempts as attempt
            cross join jsonb_object_keys(events) as attempted (position)
            where attempt.reactor = ranges.reactor
              and attempted.position::bigint > greatest(checkpoint, after_position)
              and (up_to_position is null or attempted.position::bigint <= up_to_position)
          ) as unfinished
        ) as "underWay"
      from ranges
      join refold.reactors on name = reactor
      order by reactor, version`,
    values: [upTo],
  });
}

/** Records that a version begins. */
export async function insertReactorVersion(
  tx: Queryable,
  reactor: string,
  { version, after }: BegunVersion,
): Promise<void> {
  await run(tx, refoldTables.insertInto('refold.reactor_versions').values({ reactor, version, from_position: after }));
}

/** Forgets that a version has begun: the version below handles its events. */
export async function deleteReactorVersion(tx: Queryable, reactor: string, version: number): Promise<void> {
  await run(
    tx,
    refoldTables.deleteFrom('refold.reactor_versions').where('reactor', '=', reactor).where('version', '=', version),
  );
}
