import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { RequestedRebuild, Work } from '../../store/ownership/work.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isRefusedValue } from '../../store/postgres/database-errors.ts';
import { type ProcessorClaim, releaseProcessor } from '../../store/processors/checkpoints.ts';
import { holdRebuild, isClaimed } from '../../store/registry/rebuilds.ts';
import type { ProcessorUnit } from '../../store/server/processor-unit.ts';
import { isDistributed } from '../../store/statements/placed.ts';
import type { MaintainedProcessor, MaintainedUnit } from '../processors/maintained-unit.ts';
import {
  type BuildProgress,
  createProjectionProcessor,
  type ProjectionProcessorOptions,
} from '../processors/projection-processor.ts';
import { stoppedProcessor } from '../processors/stopped-processor.ts';
import type { Positions } from '../reads/positions.ts';
import { completeRebuild } from '../rebuilds/complete-rebuild.ts';
import type { SlowEvents } from '../scheduling/slow-events.ts';
import { createSetBasedProcessor } from '../set-based/set-based-processor.ts';
import { rebuildHeldByDeadLetters } from '../versions/activation-gates.ts';
import { failVersion, resumeVersion } from '../versions/fail-version.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';
import type { TableWatch } from '../versions/table-watch.ts';
import type { VersionView } from '../versions/versions.ts';
import { claimRebuiltRows, claimRows } from './lost-rows.ts';

export interface ProjectionUnitsOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly log: EventLog;
  readonly versions: VersionView;
  /** Receives the checkpoints that this process commits. */
  readonly positions: Pick<Positions, 'reached' | 'waitFor'>;
  readonly lifecycle: Lifecycle;
  readonly tables: Pick<TableWatch, 'damageOf' | 'damages' | 'look'>;
  /** Identifies this process in the audit log, for example `host:4711`. */
  readonly owner: string;
  readonly freeze: boolean;
  /** Called when a worker of a Citus cluster has lost rows of a version. */
  readonly onRowsLost?: (() => void) | undefined;
  readonly slowEvents?: SlowEvents;
  readonly logger: Logger;
}

/**
 * Lists the units of projections: one for each partition of each declared version that is maintained, except versions that appends maintain, and
 * one for each requested rebuild of such a version.
 */
export function createProjectionUnits(options: ProjectionUnitsOptions): (work: Work) => readonly MaintainedUnit[] {
  const { versions, tables } = options;
  let listed:
    | { readonly registered: object; readonly of: readonly unknown[]; readonly units: readonly MaintainedUnit[] }
    | undefined;
  // Hundreds of versions are asked for twice a second, and seldom change.
  return ({ rebuilds, live }) => {
    const of = [rebuilds, live, tables.damages()];
    const registered = versions.registered();
    if (listed?.registered !== registered || !isDeepStrictEqual(listed.of, of))
      listed = { registered, of, units: listUnits(options, rebuilds, live) };
    return listed.units;
  };
}

function listUnits(
  options: ProjectionUnitsOptions,
  requested: Work['rebuilds'],
  live: Work['live'],
): readonly MaintainedUnit[] {
  const { projections, versions } = options;
  const maintained = projections.filter(
    ({ name, version }) =>
      ['building', 'ready', 'active', 'failed'].includes(versions.stateOf(name, version) ?? '') &&
      !versions.isPaused(name, version),
  );
  const rebuilds = requested.flatMap((rebuild) => {
    const { name, version, tableName } = rebuild;
    const declared = maintained.find((projection) => projection.name === name && projection.version === version);
    return declared ? [rebuildUnit(options, storedIn(declared, tableName), rebuild)] : [];
  });
  const joined = new Set(live.map(({ name, version }) => `${name}@${version}`));
  const behind = maintained.filter(({ id }) => !joined.has(id));
  return [...behind.flatMap((projection) => versionUnits(options, projection)), ...rebuilds];
}

/** The registry sets the number of partitions, whatever is declared here. */
function versionUnits(options: ProjectionUnitsOptions, projection: Projection): MaintainedUnit[] {
  const partitions = options.versions.partitionsOf(projection);
  return Array.from({ length: partitions }, (_, partition) => versionUnit(options, projection, partition, partitions));
}

function versionUnit(
  options: ProjectionUnitsOptions,
  projection: Projection,
  partition: number,
  partitions: number,
): MaintainedUnit {
  const { versions, lifecycle, tables, owner, logger } = options;
  const { name, version } = projection;
  const unit: ProcessorUnit = { kind: 'processor', name, version, partition };
  const id = partitions === 1 ? projection.id : `${projection.id}/${partition}`;
  return {
    unit,
    key: versionUnitKey(id, partitions, versions.stored(projection), tables),
    id,
    filter: projection.filter,
    codeFingerprint: projection.codeFingerprint,
    explain: () => tables.look(versions.stored(projection)),
    onStop: (tx, reason) => failVersion(tx, name, version, { actor: owner, reason }),
    async start(db, claim) {
      // After the claim, so this claim writes to no outdated table: a rebuild that ends from now on raises the epoch again.
      await versions.refresh();
      await leavePausedAlone(options, projection, claim);
      await leaveLiveAlone(options, projection, claim);
      const lost =
        isDistributed(db, projection) && (await claimRows({ ...options, db }, id, versions.stored(projection), claim));
      if (lost) return lost;
      const damage = await tables.look(versions.stored(projection));
      if (damage) return stoppedProcessor(id, claim, damage);
      if (versions.stateOf(name, version) === 'failed') {
        await db.transaction((tx) => resumeVersion(tx, name, version, { actor: owner, reason: 'tried again' }));
        await versions.refresh();
      }
      const stored = versions.stored(projection);
      return createProcessor({
        ...options,
        db,
        claim,
        projection: stored,
        state: stateToFold(versions.stateOf(name, version)),
        // A narrower type of a column refuses values that the declared one takes.
        explain: async (error) => (isRefusedValue(error) ? tables.look(stored) : null),
        onWritten: (checkpoint) => options.positions.reached(stored, { partition, partitions, checkpoint }),
        async onCaughtUp({ checkpoint, goal }) {
          const state = await lifecycle.caughtUp(stored, owner, { db, claim, goal });
          if (state === 'building') return state;
          logger.info(
            { projection: id, checkpoint: checkpoint.toString(), state },
            `${id} has caught up and is ${state}`,
          );
          return state;
        },
      });
    },
  };
}

/**
 * The key changes when the rows move to another table, or when the table is altered or repaired. A processor of the old table then ends, even
 * if no event arrives that would make it fail.
 */
function versionUnitKey(
  id: string,
  partitions: number,
  stored: Projection,
  tables: Pick<TableWatch, 'damageOf'>,
): string {
  return `${id} of ${partitions} in ${stored.tableName}${tables.damageOf(stored) ? ', which was altered' : ''}`;
}

/** If another partition has failed the version, this one continues to build. */
function stateToFold(state: VersionState | undefined): VersionState {
  return state === undefined || state === 'failed' ? 'building' : state;
}

/** Checked after the claim: a version that joins the appends now raises the epoch again, but one that joined before would be folded twice. */
async function leaveLiveAlone(
  { db, versions }: Pick<ProjectionUnitsOptions, 'db' | 'versions'>,
  projection: Projection,
  claim: ProcessorClaim,
): Promise<void> {
  if (!versions.isJoined(projection)) return;
  const { id, name, version } = projection;
  await releaseProcessor(db, claim);
  throw new RefoldError('PROCESSOR_FENCED', `${id}: its rows now commit with appends.`, {
    name,
    version,
    mode: 'inline',
  });
}

/** Checked after the claim: a pause from now on raises the epoch again, but one from before, which this process had not seen, would not. */
async function leavePausedAlone(
  { db, versions }: Pick<ProjectionUnitsOptions, 'db' | 'versions'>,
  { id, name, version }: Projection,
  claim: ProcessorClaim,
): Promise<void> {
  if (!versions.isPaused(name, version)) return;
  await releaseProcessor(db, claim);
  throw new RefoldError('PROCESSOR_FENCED', `${id} is paused.`, { name, version, mode: 'paused' });
}

/**
 * `projection` is the version with the table that the rebuild fills. A rebuild that waits for an operator keeps following the log. Accepting its
 * dead letters changes the unit's key, so it is checked again even if no event arrives.
 */
function rebuildUnit(
  options: ProjectionUnitsOptions,
  projection: Projection,
  rebuild: RequestedRebuild,
): MaintainedUnit {
  const { requestedAt, deadLettersAccepted } = rebuild;
  const { id, name, version, tableName } = projection;
  const { logger, owner } = options;
  /** The table that answers may be about to leave out the same events, so it gets some time to come as far. */
  async function heldAt({ checkpoint }: BuildProgress): Promise<string | null> {
    if ((await rebuildHeldByDeadLetters(options.db, projection)) === null) return null;
    await options.positions.waitFor(projection, checkpoint, { timeout: longestCatchUp }).catch(() => {}); // it is asked again below
    return rebuildHeldByDeadLetters(options.db, projection);
  }

  return {
    unit: { kind: 'rebuild', name, version, partition: 0 },
    key: `rebuild ${tableName} of ${requestedAt}${deadLettersAccepted ? ', dead letters accepted' : ''}`,
    id,
    filter: projection.filter,
    codeFingerprint: projection.codeFingerprint,
    async start(db, claim) {
      await leaveLaterRebuildAlone(db, projection, claim, rebuild);
      await options.versions.refresh();
      await leavePausedAlone(options, projection, claim);
      const lost = isDistributed(db, projection) && (await claimRebuiltRows({ ...options, db }, projection, claim));
      if (lost) return lost;
      let announced: string | null = null;
      return createProcessor({
        ...options,
        db,
        claim,
        projection,
        state: 'building',
        async onCaughtUp(progress) {
          const held = deadLettersAccepted ? null : await heldAt(progress);
          if (held !== announced) await holdRebuild(db, claim, held);
          if (held !== null && announced === null)
            logger.warn({ projection: id }, `The rebuild of ${id} does not take over: ${held}`);
          announced = held;
          if (held !== null) return 'building';
          const completed = { ...options, db, projection, claim, progress, actor: owner, deadLettersAccepted };
          if (!(await completeRebuild(completed))) return 'building';
          logger.info({ projection: id }, `${id} is rebuilt`);
          return 'over';
        },
      });
    },
  };
}

/** Checked after the claim: this process may not have seen that its rebuild has ended, and that another one was requested. */
async function leaveLaterRebuildAlone(
  db: Database,
  { id, name, version }: Projection,
  claim: ProcessorClaim,
  rebuild: RequestedRebuild,
): Promise<void> {
  if (await isClaimed(db, claim, rebuild)) return;
  await releaseProcessor(db, claim);
  throw new RefoldError('PROCESSOR_FENCED', `${id}: this rebuild has ended.`, { name, version, mode: 'over' });
}

// In milliseconds. A version that is served is seldom behind for longer.
const longestCatchUp = 10_000;

/** Creates the processor for `evolve` or `evolveSql`, as the projection declares. */
function createProcessor(
  options: ProjectionProcessorOptions & Pick<ProjectionUnitsOptions, 'log' | 'slowEvents'>,
): MaintainedProcessor {
  const { sqlFold, id } = options.projection;
  if (sqlFold) return createSetBasedProcessor({ ...options, fold: sqlFold });
  return createProjectionProcessor({ ...options, onSlowEvent: options.slowEvents?.(id) });
}
