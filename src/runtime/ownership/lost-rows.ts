import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { claimPartition, readDifferingUnits } from '../../store/distributed/claimed-partitions.ts';
import { settledPositions } from '../../store/distributed/partition-checkpoints.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { unitText } from '../../store/server/processor-unit.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { MaintainedProcessor } from '../processors/maintained-unit.ts';
import { stoppedProcessor } from '../processors/stopped-processor.ts';

/**
 * A worker of a Citus cluster may lose its last transactions: an asynchronous standby is promoted, an older disk is put back, it crashes with
 * `synchronous_commit = off`. Then its rows are not those of the checkpoints in the registry, which is on another worker.
 */

/** Returns the units, in the form of `unitText`, whose rows were not those of their checkpoint, now and at the previous call. Each is returned once. */
export function createLostRows(db: Queryable): () => Promise<readonly string[]> {
  let before = new Set<string>();
  let reported = new Set<string>();
  return async () => {
    // A batch is at first in the rows only.
    const differing = (await readDifferingUnits(db)).map((unit) => ({
      unit: unitText(unit),
      text: `${unitText(unit)} ${unit.registered} ${unit.checkpoint} ${unit.rewrites}`,
    }));
    const lost = differing.filter(({ text }) => before.has(text) && !reported.has(text));
    before = new Set(differing.map(({ text }) => text));
    reported = new Set([...reported, ...lost.map(({ text }) => text)].filter((text) => before.has(text)));
    return lost.map(({ unit }) => unit);
  };
}

export interface ClaimedRowsOptions {
  readonly db: Database;
  /** Identifies this process in the audit log. */
  readonly owner: string;
  readonly logger: Logger;
  /** Called when a worker has lost rows of a version, or what the registry knew of it. */
  readonly onRowsLost?: (() => void) | undefined;
}

/**
 * Claims the rows of a partition, whose processor this process has claimed.
 *
 * @param id the unit's name in messages
 * @returns null; a stopped processor if the partition can't be maintained any more
 * @throws RefoldError `PROCESSOR_FENCED` if the checkpoint was set to the position of the rows: the next claim continues from there
 */
export async function claimRows(
  { db, owner, logger, onRowsLost }: ClaimedRowsOptions,
  id: string,
  projection: Projection,
  claim: ProcessorClaim,
): Promise<MaintainedProcessor | null> {
  const found = await claimPartition(db, projection, claim, owner);
  if (!found) return null;
  const { name, version } = projection;
  const { cause, checkpoint } = found;
  if (cause === 'rows unknown') {
    onRowsLost?.();
    return stoppedProcessor(id, claim, lostError(projection, claim, rowsUnknown(id, projection)));
  }
  if (cause !== 'unrecorded') {
    onRowsLost?.();
    const positions = { registered: claim.checkpoint.toString(), rows: checkpoint.toString() };
    logger.error({ projection: id, ...positions }, lostText(id, cause, positions));
  }
  const message = `${id}: its checkpoint was set to position ${checkpoint}, which its rows have.`;
  throw new RefoldError('PROCESSOR_FENCED', message, { name, version, mode: 'recorded' });
}

/** Waits for the last batch of a rebuild's former owner. Returns a stopped processor if a worker has lost rows of the rebuild. */
export async function claimRebuiltRows(
  { db, onRowsLost }: ClaimedRowsOptions,
  projection: Projection,
  claim: ProcessorClaim,
): Promise<MaintainedProcessor | null> {
  const { id, name, version } = projection;
  const positions = await settledPositions(db, projection.tableName);
  if (positions.every((position) => position === claim.checkpoint)) return null;
  onRowsLost?.();
  const message = `${id}: a worker of the Citus cluster has lost transactions of this rebuild. Cancel the rebuild and start another: refold rebuild ${name}@${version} --cancel.`;
  return stoppedProcessor(id, claim, lostError(projection, claim, message));
}

function lostError({ name, version }: Projection, { checkpoint }: ProcessorClaim, message: string): RefoldError {
  return new RefoldError('HISTORY_CHANGED', message, { name, version, position: checkpoint.toString() });
}

function lostText(
  id: string,
  cause: 'rows lost' | 'registry lost',
  { registered, rows }: Readonly<Record<'registered' | 'rows', string>>,
): string {
  const wayOut = 'Look for a fail-over, a restore or a crash of a worker that lost its last transactions.';
  return cause === 'rows lost'
    ? `${id}: a worker of the Citus cluster has lost rows. They are those of position ${rows}, and the checkpoint was ${registered}. The events in between are folded again. ${wayOut}`
    : `${id}: the worker of the Citus cluster that has the registry has lost its checkpoint. It was ${registered}, and is set to ${rows} again, which the rows have. ${wayOut}`;
}

function rowsUnknown(id: string, { name, version }: Projection): string {
  return `${id}: a worker of the Citus cluster has lost dead letters, skipped events or a retry of them, as after a fail-over that lost its last transactions. Which events the rows lack is unknown. They are served as they are and not maintained. Rebuild them: refold rebuild ${name}@${version}.`;
}
