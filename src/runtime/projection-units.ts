import type { Logger } from 'pino';
import { RefoldError } from '../errors.ts';
import { type Projection, storedIn } from '../projections/projection.ts';
import { type ProcessorClaim, releaseProcessor } from '../store/checkpoints.ts';
import type { Database } from '../store/database.ts';
import type { EventLog } from '../store/event-log.ts';
import { readInlineVersions } from '../store/inline-versions.ts';
import type { ProcessorUnit } from '../store/processor-unit.ts';
import type { Work } from '../store/work.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { MaintainedProcessor, MaintainedUnit } from './maintained-unit.ts';
import type { Positions } from './positions.ts';
import { createProjectionProcessor, type ProjectionProcessorOptions } from './projection-processor.ts';
import { completeRebuild } from './rebuild.ts';
import { createSetBasedProcessor } from './set-based-processor.ts';
import type { Versions } from './versions.ts';

export interface ProjectionUnitsOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly log: EventLog;
  readonly versions: Versions;
  /** Told of what this process commits. */
  readonly positions: Pick<Positions, 'reached'>;
  readonly lifecycle: Lifecycle;
  /** Names this process in the audit log, such as `host:4711`. */
  readonly owner: string;
  readonly freeze: boolean;
  readonly logger: Logger;
}

/** A unit for each partition of each declared version that is maintained, unless appends do that, and one for each rebuild that has been asked for of such a version. */
export function createProjectionUnits(options: ProjectionUnitsOptions): (work: Work) => readonly MaintainedUnit[] {
  const { projections, versions } = options;
  return (work) => {
    const maintained = projections.filter(({ name, version }) =>
      ['building', 'ready', 'active'].includes(versions.stateOf(name, version) ?? ''),
    );
    const rebuilds = work.rebuilds.flatMap(({ name, version, tableName }) => {
      const declared = maintained.find((projection) => projection.name === name && projection.version === version);
      return declared ? [rebuildUnit(options, storedIn(declared, tableName))] : [];
    });
    const live = new Set(work.live.map(({ name, version }) => `${name}@${version}`));
    const behind = maintained.filter(({ id }) => !live.has(id));
    return [...behind.flatMap((projection) => versionUnits(options, projection)), ...rebuilds];
  };
}

/** The registry tells how many partitions there are, whatever is declared here. */
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
  const { versions, lifecycle, owner, logger } = options;
  const { name, version } = projection;
  const unit: ProcessorUnit = { kind: 'processor', name, version, partition };
  const id = partitions === 1 ? projection.id : `${projection.id}/${partition}`;
  return {
    unit,
    // Rows in another table: a processor that knows the old one ends, even where no event comes that would tell it.
    key: `${id} of ${partitions} in ${versions.stored(projection).tableName}`,
    id,
    async start(db, claim) {
      // After the claim: a rebuild that ends now raises the epoch again, and this claim writes to no table.
      await versions.refresh();
      await leaveLiveAlone(db, projection, claim);
      const stored = versions.stored(projection);
      return createProcessor({
        ...options,
        db,
        claim,
        projection: stored,
        state: versions.stateOf(name, version) ?? 'building',
        onWritten: (checkpoint) => options.positions.reached(stored, { partition, partitions, checkpoint }),
        async onCaughtUp({ checkpoint, horizon }) {
          const state = await lifecycle.caughtUp(stored, owner, claim, horizon);
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

/** After the claim, too: a version that joins the appends now raises the epoch again, but one that had before would be folded twice. */
async function leaveLiveAlone(db: Database, { id, name, version }: Projection, claim: ProcessorClaim): Promise<void> {
  const inline = (await readInlineVersions(db)).find((one) => one.name === name && one.version === version);
  if (inline === undefined || inline.status === 'building') return;
  await releaseProcessor(db, claim);
  throw new RefoldError('PROCESSOR_FENCED', `${id}: its rows commit with appends by now.`, {
    name,
    version,
    mode: 'inline',
  });
}

/** `projection` is the version with the table that the rebuild fills. */
function rebuildUnit(options: ProjectionUnitsOptions, projection: Projection): MaintainedUnit {
  const { id, name, version, tableName } = projection;
  return {
    unit: { kind: 'rebuild', name, version, partition: 0 },
    key: `rebuild ${tableName}`,
    id,
    async start(db, claim) {
      return createProcessor({
        ...options,
        db,
        claim,
        projection,
        state: 'building',
        async onCaughtUp(progress) {
          await completeRebuild({ ...options, db, projection, claim, progress, actor: options.owner });
          options.logger.info({ projection: id }, `${id} is rebuilt`);
          return 'over';
        },
      });
    },
  };
}

/** Folds event by event or batch by batch, as the projection declares. */
function createProcessor(
  options: ProjectionProcessorOptions & Pick<ProjectionUnitsOptions, 'log'>,
): MaintainedProcessor {
  const { sqlFold } = options.projection;
  return sqlFold ? createSetBasedProcessor({ ...options, fold: sqlFold }) : createProjectionProcessor(options);
}
