import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { waitsForMore } from '../../projections/projection/activation-rule.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { Database } from '../../store/postgres/database.ts';
import { expectClaim, type ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { readVersionsOf } from '../../store/registry/all-registries.ts';
import { deleteCanary } from '../../store/registry/canaries.ts';
import { recordCode } from '../../store/registry/declared-versions.ts';
import { forgetInline } from '../../store/registry/inline-versions.ts';
import { deleteRebuild, type EndedRebuild, readEventsFolded } from '../../store/registry/rebuilds.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { byVersion } from '../../store/registry/stored-once.ts';
import { type HeldBy, recordTransition } from '../../store/registry/transitions.ts';
import { readVersionStatus } from '../../store/registry/version-positions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { dropLater } from '../../store/tables/old-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { deleteTableSnapshotsOf } from '../../store/tables/table-snapshots.ts';
import { refuseBreaking, wouldBreak } from '../schema-changes/breaking-clients.ts';
import type { SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { holdForDeadLetters, holdWhatIsPartial } from './activation-gates.ts';
import { type CanarySteps, createCanarySteps } from './canary-steps.ts';
import {
  type ActivateOptions,
  expectPause,
  expectVersion,
  refused,
  refusePaused,
  type TransitionReason,
} from './expect-version.ts';
import { createPauseSteps, type PauseSteps } from './pause-steps.ts';
import { holdForUndeclaredEvents } from './undeclared-events.ts';
import { pointViews } from './version-tables.ts';

/** A build that has caught up. */
export interface OwnedBuild {
  /** Fenced by the ownership of the claim: if its owner stalls in the middle, it does not keep the next one waiting. */
  readonly db: Database;
  readonly claim: ProcessorClaim;
  readonly goal: GlobalPosition;
}

export interface Lifecycle extends CanarySteps, PauseSteps {
  /**
   * Completes a version that has caught up: it becomes ready, and active if its declaration requires nothing more. A version rebuilt in place
   * returns to its earlier state. It works only while the processor owns its claim, because the version may have started again. If the claim is one of
   * several partitions, the version stays `building` until all partitions have folded the log up to the goal.
   */
  caughtUp(projection: Projection, actor: string, build: OwnedBuild): Promise<VersionState>;
  /** Activates a ready version that meets all conditions of its declaration, unless it is held or would break clients. */
  becomeActive(projection: Projection, step: TransitionReason): Promise<VersionState>;
  /** Keeps a ready version from becoming active by itself until an operator activates it. Does nothing if it is no longer ready. */
  hold(projection: Projection, heldBy: HeldBy, step: TransitionReason): Promise<void>;
  /**
   * Activates a ready version, whatever conditions its declaration has.
   *
   * @throws RefoldError `INVALID_TRANSITION`. If it would break clients of the version that answers, `fields.breaking` lists the changes.
   */
  activate(name: string, version: number, step: TransitionReason, options?: ActivateOptions): Promise<void>;
  /** Takes the highest active version out of service; the next lower active one then answers. @throws RefoldError `INVALID_TRANSITION` */
  rollback(name: string, step: TransitionReason): Promise<{ from: number; to: number }>;
  /**
   * Ends the maintenance of a version; its table is dropped after a grace period.
   *
   * @param graceSeconds how long SQL can still read the table; a day by default
   * @throws RefoldError `INVALID_TRANSITION`
   */
  retire(name: string, version: number, step: TransitionReason, graceSeconds?: number): Promise<void>;
}

/**
 * Completes a building version: it becomes ready, and active if its declaration requires nothing more.
 * Runs within a transaction. The table must have its indexes.
 */
export async function completeVersion(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  step: TransitionReason,
  /** Null if no client has been served yet. */
  declarations: SchemaDeclarations | null,
): Promise<VersionState> {
  const { name, version, activation } = projection;
  const { state, heldReason, pausedAt } = await expectVersion(tx, name, version);
  if (state !== 'building' || pausedAt !== null) return state;
  await recordTransition(tx, { name, version, from: 'building', to: 'ready', heldReason, ...step });
  if (activation.by === 'manual' || heldReason !== null || waitsForMore(activation)) return 'ready';
  return activateUnlessHeld(tx, readSchema, projection, step, declarations);
}

async function activateUnlessHeld(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  step: TransitionReason,
  declarations: SchemaDeclarations | null,
  heldBy: HeldBy | null = null,
): Promise<VersionState> {
  const { name, version } = projection;
  if (await holdWhatIsPartial(tx, projection, step)) return 'ready';
  if (await holdForDeadLetters(tx, projection, step, heldBy)) return 'ready';
  if (declarations && (await holdForUndeclaredEvents(tx, projection, declarations.families, step))) return 'ready';
  const broken = declarations && (await wouldBreak(tx, declarations, projection));
  if (broken) {
    // On a repeated check it stays held as it was.
    if (heldBy === 'breaking') return 'ready';
    const heldReason = `It would break ${broken.what} 'refold activate ${name}@${version} --breaking' activates it all the same.`;
    const held = { heldReason, heldBy: 'breaking', actor: step.actor, reason: heldReason } as const;
    await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
    return 'ready';
  }
  await setActive(tx, readSchema, name, version, { ...step, reason: `${step.reason}, activation 'auto'` });
  return 'active';
}

async function setActive(
  tx: Queryable,
  readSchema: string,
  name: string,
  version: number,
  step: TransitionReason,
): Promise<void> {
  await recordTransition(tx, { name, version, from: 'ready', to: 'active', heldReason: null, ...step });
  await deleteCanary(tx, name, version);
  await pointViews(tx, readSchema, [name]);
}

/** @param declarations null if it may break clients */
async function activateReady(
  tx: Queryable,
  readSchema: string,
  { name, version }: Pick<Projection, 'name' | 'version'>,
  step: TransitionReason,
  declarations: SchemaDeclarations | null,
): Promise<void> {
  const { state, ...found } = await expectVersion(tx, name, version);
  switch (state) {
    case 'ready':
      refusePaused(name, version, found);
      if (declarations) await refuseBreaking(tx, declarations, name, version);
      return setActive(tx, readSchema, name, version, step);
    case 'active':
      throw refused(name, version, `is active already.`);
    case 'building':
      throw refused(name, version, `is still building; 'refold status' shows how far it is.`);
    case 'failed':
      throw refused(name, version, `has failed; 'refold status' says why. It continues when the cause is fixed.`);
    case 'retired':
      throw refused(name, version, `is retired; declare the next version instead.`);
  }
}

/** Returns a version that was emptied and rebuilt in place to its earlier state; clients knew it before. */
async function completeInPlace(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  rebuild: EndedRebuild,
  actor: string,
): Promise<VersionState> {
  const { name, version, codeFingerprint } = projection;
  const { state, heldReason } = await expectVersion(tx, name, version);
  if (state !== 'building') return state;
  // The code of this process, which may differ from the code of the process that requested the rebuild.
  await recordCode(tx, { name, version, codeFingerprint });
  const folded = await readEventsFolded(tx, name, version);
  const step = { name, version, actor, reason: `rebuilt in place${rebuiltFrom(rebuild)}, ${folded} events folded` };
  await recordTransition(tx, { ...step, from: 'building', to: 'ready', heldReason });
  if (rebuild.stateBefore !== 'active' || (await holdForDeadLetters(tx, projection, step))) return 'ready';
  await recordTransition(tx, { ...step, from: 'ready', to: 'active', heldReason: null });
  await pointViews(tx, readSchema, [name]);
  return 'active';
}

/** Says where a rebuild started, for the audit log. */
export function rebuiltFrom({ snapshotId, startedAtPosition }: EndedRebuild): string {
  return snapshotId === null ? '' : ` from snapshot ${snapshotId} at position ${startedAtPosition}`;
}

/** Every transition is one transaction: the state, the audit log, the stable view, and the notification of every process. */
export function createLifecycle(db: Database, readSchema: string, declarations: SchemaDeclarations): Lifecycle {
  /** Completes the version with its last partition. Owners of several partitions may call it at the same time. */
  async function partitionCaughtUp(
    projection: Projection,
    actor: string,
    { db, claim, goal }: OwnedBuild,
  ): Promise<VersionState> {
    const { name, version } = projection;
    // At the head, a partition asks after every batch until the last one has caught up. Avoid the lock for those.
    const status = await readVersionStatus(db, name, version);
    if (status?.state === 'building' && !(await allReached(db, projection, goal))) return 'building';
    return db.transaction(async (tx) => {
      const { state } = await expectVersion(tx, name, version);
      if (state !== 'building' || !(await allReached(tx, projection, goal))) return state;
      // Within the lock, because creating the same index twice at the same time fails.
      await expectClaim(tx, claim);
      await createReadTable(projection, readSchema).createIndexes(tx);
      return complete(tx, projection, actor);
    });
  }

  async function complete(tx: Queryable, projection: Projection, actor: string): Promise<VersionState> {
    const rebuild = await deleteRebuild(tx, projection.name, projection.version, 'in place');
    return rebuild
      ? completeInPlace(tx, readSchema, projection, rebuild, actor)
      : completeVersion(tx, readSchema, projection, { actor, reason: 'caught up' }, declarations);
  }

  return {
    async caughtUp(projection, actor, build) {
      const { db: owned, claim } = build;
      if (claim.partitions > 1) return partitionCaughtUp(projection, actor, build);
      await createReadTable(projection, readSchema).createIndexes(owned);
      return owned.transaction(async (tx) => {
        await expectVersion(tx, projection.name, projection.version);
        await expectClaim(tx, claim);
        return complete(tx, projection, actor);
      });
    },
    becomeActive: (projection, step) =>
      db.transaction(async (tx) => {
        const { name, version, activation } = projection;
        const { state, heldReason, heldBy, pausedAt } = await expectVersion(tx, name, version);
        const lifted = (heldBy === 'breaking' && activation.breaking !== 'hold') || heldBy === 'dead-letters';
        if (state !== 'ready' || pausedAt !== null || (heldReason !== null && !lifted)) return state;
        return activateUnlessHeld(tx, readSchema, projection, step, declarations, heldBy);
      }),
    async hold({ name, version }, heldBy, step) {
      await db.transaction(async (tx) => {
        const { state, heldReason } = await expectVersion(tx, name, version);
        if (state !== 'ready' || heldReason !== null) return;
        const held = { heldReason: step.reason, heldBy };
        await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held, ...step });
      });
    },
    async activate(name, version, step, { allowBreaking = false, along = [] } = {}) {
      await db.transaction(async (tx) => {
        // In one order, because each is locked to the end.
        for (const one of [{ name, version }, ...along].toSorted(byVersion))
          await activateReady(tx, readSchema, one, step, allowBreaking ? null : declarations);
      });
    },
    ...createCanarySteps(db, declarations),
    ...createPauseSteps(db),
    rollback: (name, step) =>
      db.transaction(async (tx) => {
        const actives = (await readVersionsOf(tx, name)).filter(({ state }) => state === 'active');
        const active = actives.map(({ version }) => version);
        const [to, from] = active.slice(-2);
        if (from === undefined || to === undefined) {
          const found =
            active.length === 1 ? `only ${name}@${active[0]} is active` : `no version of '${name}' is active`;
          throw new RefoldError(
            'INVALID_TRANSITION',
            `Can't roll back: ${found}, so nothing could answer in its place.`,
            { name },
          );
        }
        const locked = await expectVersion(tx, name, from);
        if (locked.state !== 'active') throw refused(name, from, `is ${locked.state} by now; look at 'refold status'.`);
        refusePaused(name, to, await expectPause(tx, name, to, actives));
        await recordTransition(tx, {
          name,
          version: from,
          from: 'active',
          to: 'ready',
          heldReason: `rolled back by ${step.actor}: ${step.reason}`,
          heldBy: 'operator',
          ...step,
        });
        await pointViews(tx, readSchema, [name]);
        return { from, to };
      }),
    async retire(name, version, step, graceSeconds = 86_400) {
      await db.transaction(async (tx) => {
        const { state, tableName } = await expectVersion(tx, name, version);
        if (state === 'retired') throw refused(name, version, 'is retired already.');
        await forgetInline(tx, name, version);
        await deleteCanary(tx, name, version);
        await recordTransition(tx, { name, version, from: state, to: 'retired', heldReason: null, ...step });
        await pointViews(tx, readSchema, [name]);
        await dropLater(tx, readSchema, tableName, graceSeconds);
        const rebuild = await deleteRebuild(tx, name, version);
        if (rebuild && rebuild.tableName !== tableName) await dropLater(tx, readSchema, rebuild.tableName, 0);
        await deleteTableSnapshotsOf(tx, name, version);
      });
    },
  };
}

/** Whether every partition has folded the log up to a position, and none is stopped. */
async function allReached(tx: Queryable, { name, version }: Projection, position: GlobalPosition): Promise<boolean> {
  const registered = await readVersion(tx, { name, version });
  return registered !== undefined && registered.status !== 'stopped' && registered.checkpoint >= position;
}
