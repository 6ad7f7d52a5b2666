import { sql } from 'kysely';
import type { VersionState } from '../../projections/projection/version-map.ts';
import { storedText } from '../../thrown.ts';
import { notifyingText, sendNotifications } from '../statements/notifying.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';

/** The channel that notifies every process of changes in the registry. */
export const registryChannel = 'refold_registry';

/** What keeps a ready version from becoming active: an operator (after a rollback), or its declared rule. */
export type HeldBy = NonNullable<TableRow<'refold.projections'>['held_by']>;

/** A transition to record. */
export interface NewTransition {
  readonly name: string;
  readonly version: number;
  readonly from: VersionState | null;
  readonly to: VersionState;
  readonly actor: string;
  readonly reason: string;
  /** Why the version must not become active automatically; null removes the hold. */
  readonly heldReason: string | null;
  /** What holds it. @default what held it before */
  readonly heldBy?: HeldBy;
}

/** Records one transition of a version: writes the state and the audit log, and notifies every process. */
export function recordTransition(db: Queryable, step: NewTransition): Promise<void> {
  return recordTransitions(db, [step]);
}

/** Like {@link recordTransition}, for several versions with one statement. */
export async function recordTransitions(db: Queryable, steps: readonly NewTransition[]): Promise<void> {
  if (steps.length === 0) return;
  const notified = await db.query({
    text: `
      with step as (
        select *
        from json_to_recordset($1) as step
          (name text, version integer, "from" text, "to" text, actor text, reason text, "heldReason" text, "heldBy" text)
      ), changed as (
        update refold.projections as projection
        set
          state = step."to",
          held_reason = step."heldReason",
          held_by = case when step."heldReason" is not null then coalesce(step."heldBy", held_by, 'operator') end,
          state_changed_at = now()
        from step
        where projection.name = step.name and projection.version = step.version
      ), logged as (
        insert into refold.transitions (name, version, from_state, to_state, actor, reason)
        select name, version, "from", "to", actor, reason from step
      )
      ${notifyingText(db, { channel: registryChannel, payload: "name || '@' || version", from: ' from step' })}`,
    values: [
      JSON.stringify(
        steps.map(({ name, version, from, to, actor, reason, heldReason, heldBy = null }) => {
          // A program may give what it has caught as the reason.
          const held = heldReason === null ? null : storedText(heldReason);
          return { name, version, from, to, actor, reason: storedText(reason), heldReason: held, heldBy };
        }),
      ),
    ],
  });
  await sendNotifications(db, registryChannel, notified);
}

/** A version whose row is locked. */
interface LockedState {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
  readonly heldReason: string | null;
}

/** Records what an operator did with a version, which keeps its state: writes the audit log, and notifies every process. */
export function recordOperation(
  db: Queryable,
  { name, version, state, heldReason }: LockedState,
  { actor, reason }: { readonly actor: string; readonly reason: string },
): Promise<void> {
  return recordTransition(db, { name, version, from: state, to: state, heldReason, actor, reason });
}

/**
 * Like {@link recordOperation}, for an operation that changes nothing of the version: writes the audit log only. So it needs no lock on the version.
 */
export async function logOperation(
  db: Queryable,
  { name, version, state }: Omit<LockedState, 'heldReason'>,
  { actor, reason }: { readonly actor: string; readonly reason: string },
): Promise<void> {
  await run(
    db,
    refoldTables
      .insertInto('refold.transitions')
      .values({ name, version, from_state: state, to_state: state, actor, reason: storedText(reason) }),
  );
}

/** Updates the reason of a hold, for example with new counts. Not a transition. */
export async function restateHold(
  db: Queryable,
  { name, version }: Pick<NewTransition, 'name' | 'version'>,
  heldBy: HeldBy,
  reason: string,
): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.projections')
      .set({ held_reason: reason })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('held_by', '=', heldBy)
      .where('held_reason', '<>', reason),
  );
}

/** When the version was declared first, with all digits of the database's clock. */
export async function declaredAt(db: Queryable, name: string, version: number): Promise<string | undefined> {
  const [first] = await run(
    db,
    refoldTables
      .selectFrom('refold.transitions')
      .select(sql<string>`at::text`.as('at'))
      .where('name', '=', name)
      .where('version', '=', version)
      .where('from_state', 'is', null)
      .orderBy('id', 'desc')
      .limit(1),
  );
  return first?.at;
}
