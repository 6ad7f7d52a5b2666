import { laterPosition } from '../events/global-position.ts';
import { type Projection, storedIn } from '../projections/projection.ts';
import type { ProcessorClaim } from '../store/checkpoints.ts';
import type { Database } from '../store/database.ts';
import { deleteDeadLettersOf } from '../store/dead-letters.ts';
import type { EventLog } from '../store/event-log.ts';
import { dropLater, dropNever } from '../store/old-tables.ts';
import { createReadTable } from '../store/read-table.ts';
import { adoptTable, deleteRebuild, insertRebuild, lockCheckpoint, readRebuilds } from '../store/rebuilds.ts';
import { recordStep } from '../store/registry.ts';
import { expectVersion, pointView, refused, type StepReason } from './lifecycle.ts';
import type { BuildProgress } from './projection-processor.ts';

/** Operations that have begun on the old table end on it: the longest statement and the longest wait for a position are far shorter. */
const oldTableSeconds = 300;

/**
 * Asks for a version's table to be built anew, from the first event, by whichever process maintains the version; the old table serves
 * and stays current meanwhile. The first request wins.
 *
 * @throws RefoldError `INVALID_TRANSITION` where one is under way, saying who asked for it, or where there is nothing to rebuild.
 */
export async function requestRebuild(
  db: Database,
  projection: Projection,
  readSchema: string,
  step: StepReason,
): Promise<void> {
  const { name, version } = projection;
  await db.transaction(async (tx) => {
    const { state, generation, heldReason } = await expectVersion(tx, name, version);
    if (state === 'building')
      throw refused(name, version, 'is being built for the first time; there is nothing to rebuild.');
    if (state !== 'ready' && state !== 'active')
      throw refused(name, version, `is ${state}; only a version that is maintained can be rebuilt.`);
    const tableName = `${name}_v${version}_g${generation + 1}`;
    if (!(await insertRebuild(tx, { name, version, tableName, ...step }))) {
      const other = (await readRebuilds(tx)).find((one) => one.name === name && one.version === version);
      throw refused(
        name,
        version,
        `is being rebuilt already: ${other?.requestedBy} asked for it at ${other?.requestedAt} (${other?.reason}); ${other?.owner ?? 'nobody yet'} works on it.`,
      );
    }
    await dropNever(tx, readSchema, tableName);
    const table = createReadTable(storedIn(projection, tableName), readSchema);
    await table.drop(tx);
    await table.create(tx);
    await recordStep(tx, {
      name,
      version,
      from: state,
      to: state,
      heldReason,
      actor: step.actor,
      reason: `rebuild asked for: ${step.reason}`,
    });
  });
}

/** Ends a rebuild without a result. @throws RefoldError `INVALID_TRANSITION` where there is none. */
export async function cancelRebuild(
  db: Database,
  name: string,
  version: number,
  readSchema: string,
  step: StepReason,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    const ended = await deleteRebuild(tx, name, version);
    if (!ended) throw refused(name, version, 'is not being rebuilt.');
    await deleteDeadLettersOf(tx, ended.tableName);
    await dropLater(tx, readSchema, ended.tableName, 0);
    await recordStep(tx, {
      name,
      version,
      from: state,
      to: state,
      heldReason,
      actor: step.actor,
      reason: `rebuild cancelled: ${step.reason}`,
    });
  });
}

/**
 * The new table is as good as complete: while the version's own processor is held still for a moment, the last events are folded and
 * the table takes over, in one transaction. Operations under way end on the old table.
 */
export async function completeRebuild(options: {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  /** The version with the new table. */
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  readonly progress: BuildProgress;
  readonly actor: string;
}): Promise<void> {
  const { db, log, readSchema, projection, progress, actor } = options;
  const { name, version, tableName, codeFingerprint } = projection;
  await createReadTable(projection, readSchema).createIndexes(db);
  await db.transaction(async (tx) => {
    const before = await expectVersion(tx, name, version);
    const served = await lockCheckpoint(tx, name, version);
    const upTo = laterPosition(progress.checkpoint, served ?? progress.checkpoint);
    // What the processor has folded is below the horizon, so this statement sees it all.
    await progress.finish(tx, await eventsBetween(log, projection, progress.checkpoint, upTo), upTo);
    await deleteRebuild(tx, name, version);
    await adoptTable(tx, { name, version, tableName, checkpoint: upTo, codeFingerprint });
    await deleteDeadLettersOf(tx, before.tableName);
    await dropLater(tx, readSchema, before.tableName, oldTableSeconds);
    await recordStep(tx, {
      name,
      version,
      from: before.state,
      to: before.state,
      heldReason: before.heldReason,
      actor,
      reason: `rebuilt up to position ${upTo}`,
    });
    await pointView(tx, readSchema, name);
  });
}

async function eventsBetween(
  log: EventLog,
  { filter }: Projection,
  from: BuildProgress['checkpoint'],
  upTo: BuildProgress['checkpoint'],
) {
  const events = [];
  for (let after = from; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter, limit: 10_000 });
    events.push(...page.events);
    after = page.upTo;
  }
  return events;
}
