import type { VersionState } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../postgres/statement.ts';

/** Channel that tells every process that the registry changed. */
export const registryChannel = 'refold_registry';

/** Who keeps a ready version from becoming active by itself: an operator (by a rollback), or its declared rule. */
export type HeldBy = 'operator' | 'breaking' | 'verification' | 'dead-letters';

export interface Step {
  readonly name: string;
  readonly version: number;
  readonly from: VersionState | null;
  readonly to: VersionState;
  readonly actor: string;
  readonly reason: string;
  /** Why the version must not become active by itself; null lifts that. */
  readonly heldReason: string | null;
  /** Who holds it. @default who held it before */
  readonly heldBy?: HeldBy;
}

/** One step in the life of a version: the state, the audit log, and the notification of every process. */
export async function recordStep(db: Queryable, step: Step): Promise<void> {
  await db.query({
    text: `
      with changed as (
        update refold.projections
        set state = $4, held_reason = $7, held_by = case when $7::text is not null then coalesce($8, held_by, 'operator') end, state_changed_at = now()
        where name = $1 and version = $2
      ), logged as (
        insert into refold.transitions (name, version, from_state, to_state, actor, reason)
        values ($1, $2, $3, $4, $5, $6)
      )
      select pg_notify('${registryChannel}', $1::text || '@' || $2::text)`,
    values: [
      step.name,
      step.version,
      step.from,
      step.to,
      step.actor,
      step.reason,
      step.heldReason,
      step.heldBy ?? null,
    ],
  });
}

/** What holds a ready version is the same, and there is more or less of it: no step of its life. */
export async function restateHold(
  db: Queryable,
  { name, version }: Pick<Step, 'name' | 'version'>,
  heldBy: HeldBy,
  reason: string,
): Promise<void> {
  await db.query({
    text: `
      update refold.projections
      set held_reason = $4
      where name = $1 and version = $2 and held_by = $3 and held_reason <> $4`,
    values: [name, version, heldBy, reason],
  });
}

/** The reason of a version's last step. */
export async function lastReason(db: Queryable, name: string, version: number): Promise<string | undefined> {
  const rows = await db.query<{ reason: string }>({
    text: `
      select reason
      from refold.transitions
      where name = $1 and version = $2
      order by id desc
      limit 1`,
    values: [name, version],
  });
  return rows[0]?.reason;
}

/** One step in the life of a version, as the audit log holds it. */
export interface Transition {
  readonly name: string;
  readonly version: number;
  readonly from: VersionState | null;
  readonly to: VersionState;
  readonly actor: string;
  readonly reason: string;
  readonly at: string;
}

/** The last steps, the oldest of them first: of all projections, of one, or of one of its versions. */
export async function readTransitions(
  db: Queryable,
  { name = null, version = null, limit }: { name?: string | null; version?: number | null; limit: number },
): Promise<Transition[]> {
  return db.query<Transition>({
    text: `
      select name, version, "from", "to", actor, reason, at
      from (
        select id, name, version, from_state as "from", to_state as "to", actor, reason, at
        from refold.transitions
        where ($1::text is null or name = $1) and ($2::integer is null or version = $2)
        order by id desc
        limit $3
      ) last
      order by id`,
    values: [name, version, limit],
  });
}
