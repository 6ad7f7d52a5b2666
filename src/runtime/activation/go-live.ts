import type { Logger } from 'pino';
import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import { callOnSkip } from '../../projections/fold/on-skip.ts';
import { furthest } from '../../projections/projection/partition.ts';
import { keyText, type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import { foldBatch, keysTouched, type LeftOutOfRows, writesOf } from '../../store/inline/folded-batch.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { pruneChanges } from '../../store/processors/changes.ts';
import { readBlockedAmong } from '../../store/processors/dead-letters.ts';
import { readDiscardsOf } from '../../store/processors/discards.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import {
  becomeLive,
  keepFromLive,
  limitLockWaits,
  readInlineVersions,
  settleLeave,
} from '../../store/registry/inline-versions.ts';
import { readVersionStatus } from '../../store/registry/version-positions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';
import { expectOrder } from '../../store/tables/write-rows.ts';
import { reasonOf } from '../../thrown.ts';
import { logLeftOut } from '../dead-letters/skips.ts';
import { keepChangesMinutes, pruneEveryMilliseconds } from '../processors/pruning.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { closeGateBriefly, gateTimeout, isGateFree, maxIdleMs, maxLeft } from '../versions/closed-gate.ts';
import { expectVersion } from '../versions/expect-version.ts';
import { isHeld } from '../versions/leave-inline.ts';
import type { TableWatch } from '../versions/table-watch.ts';
import type { VersionView } from '../versions/versions.ts';

export interface GoLiveOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly versions: VersionView;
  readonly tables: Pick<TableWatch, 'damageOf' | 'look'>;
  readonly freeze: boolean;
  readonly logger: Logger;
}

const lookMilliseconds = 250;
const retryAtMost = 30_000;
// Appends are refused while nothing checks their unique values. The gate is then closed for at most a tenth of the time.
const retryUniqueAtMost = 1_000;
// A process whose appends cannot fold, such as an older one during a deployment, will probably append again.
const passedSeconds = 5;

/** Makes inline versions join the appends as soon as their processors have caught up. Every process that maintains them runs it. */
export function createGoLive(options: GoLiveOptions): PeriodicTask {
  const { db, versions, logger } = options;
  const inline = options.projections.filter(({ mode }) => mode === 'inline');
  const waits = new Map<string, { readonly until: number; readonly milliseconds: number }>();
  let lastPrune = performance.now();
  const task = startPeriodicTask(lookMilliseconds, look, (error) =>
    logger.warn(
      { err: error },
      `could not look for inline versions that have caught up; trying again. ${reasonOf(error)}`,
    ),
  );
  const unsubscribe = versions.onChange(() => task.soon());

  async function look(signal: AbortSignal): Promise<void> {
    const known = await readInlineVersions(db);
    for (const projection of inline) {
      const found = known.find(({ name, version }) => name === projection.name && version === projection.version);
      if (signal.aborted) return;
      if (found?.status === 'leaving') await settleLeave(db, projection.name, projection.version);
      if (found?.status !== 'building' || cannotGoOn(projection)) continue;
      if ((found.secondsSincePassed ?? passedSeconds) < passedSeconds) continue;
      const wait = waits.get(projection.id);
      if ((wait?.until ?? 0) > performance.now()) continue;
      if (await tryGoLive(projection)) waits.delete(projection.id);
      else {
        const atMost = projection.uniqueIndexes.length > 0 ? retryUniqueAtMost : retryAtMost;
        const milliseconds = Math.min(atMost, (wait?.milliseconds ?? lookMilliseconds) * 2);
        waits.set(projection.id, { until: performance.now() + milliseconds, milliseconds });
      }
    }
    await prune(known.filter(({ status }) => status === 'live'));
  }

  /** Whether appends that fold into the version would fail. */
  function cannotGoOn(projection: Projection): boolean {
    return versions.stopped().has(projection.id) || options.tables.damageOf(versions.stored(projection)) !== null;
  }

  /** Returns false if running appends would block all others for too long. */
  async function tryGoLive(projection: Projection): Promise<boolean> {
    try {
      // Appends may have left it because of its table.
      if (await options.tables.look(versions.stored(projection))) return false;
      const position = await goLive(options, projection);
      if (position !== null)
        logger.info(
          { projection: projection.id, position: position.toString() },
          `${projection.id} commits with appends`,
        );
      return true;
    } catch (error) {
      // If the database refuses rows of the last events, the processor will handle that by the declared policy. On a busy machine, the server
      // may also have ended the transaction because this process was too slow.
      // A process that knows the payload version of all events will succeed.
      if (isHeld(error) || isRowRefusal(error) || isOutage(error) || isVersionUnknown(error)) return false;
      throw error;
    }
  }

  /** Prunes changes of live versions, which have no processor that would. */
  async function prune(live: readonly { readonly name: string; readonly version: number }[]): Promise<void> {
    if (performance.now() - lastPrune < pruneEveryMilliseconds) return;
    lastPrune = performance.now();
    for (const version of live) await pruneChanges(db, version, keepChangesMinutes);
  }

  return {
    soon: task.soon,
    stop() {
      unsubscribe();
      return task.stop();
    },
  };
}

type GoLiveParts = Pick<GoLiveOptions, 'db' | 'log' | 'readSchema' | 'freeze'> & Partial<Pick<GoLiveOptions, 'logger'>>;

/**
 * Makes a version live that has caught up: in one transaction during which no append runs, it folds the last events. Appends wait for that
 * moment, so it is tried only if it will probably be short.
 *
 * @returns the position up to which its table was complete then; null if the version is not near the head, not maintained or already live, or
 *   if an append has been running for long
 * @throws RefoldError `DATABASE_ERROR` with `sqlState` 55P03 if a running append takes too long
 */
export async function goLive(options: GoLiveParts, projection: Projection): Promise<GlobalPosition | null> {
  const { db, log, logger } = options;
  const { name, version } = projection;
  const status = await readVersionStatus(db, name, version);
  if (!status || status.paused || (status.state !== 'ready' && status.state !== 'active')) return null;
  if ((await log.horizon()) - status.checkpoint > maxLeft) return null;
  if (!(await isGateFree(db))) return null;
  const joined = await db.transaction(
    async (tx) => {
      // Everything else that may wait comes before the gate.
      await limitLockWaits(tx, gateTimeout);
      if (!(await keepFromLive(tx, name, version))) return null;
      const { state, tableName, pausedAt } = await expectVersion(tx, name, version);
      if (pausedAt !== null || (state !== 'ready' && state !== 'active')) return null;
      const partitions = await lockPartitions(tx, name, version);
      const checkpoint = globalPosition(furthest(partitions));
      // After partitions were merged, rows are at several positions for a while.
      if (partitions.length !== 1 || partitions[0]?.checkpoint !== checkpoint) return null;
      const head = await closeGateBriefly(tx);
      const known = (await readInlineVersions(tx)).find((one) => one.name === name && one.version === version);
      if (known?.status !== 'building' || head - checkpoint > maxLeft) return null;
      // On this connection, because all appends wait and the pool may have no other connection for a while.
      const tail = await log.readTail({ after: checkpoint, filter: projection.filter, limit: Number(maxLeft) + 1 }, tx);
      // A transaction that began to write before the gate existed; or the events are too large for one page.
      if (tail.horizon < head || tail.upTo < head) return null;
      const leftOut = await foldLeft(tx, options, storedIn(projection, tableName), tail.events, head);
      await becomeLive(tx, name, version, head);
      return { head, leftOut };
    },
    { idleTimeoutMs: maxIdleMs },
  );
  if (logger && joined?.leftOut) logLeftOut(logger, projection.id, joined.leftOut);
  return joined?.head ?? null;
}

async function foldLeft(
  tx: Queryable,
  { readSchema, freeze }: GoLiveParts,
  projection: Projection,
  events: readonly RecordedEvent[],
  upTo: GlobalPosition,
): Promise<LeftOutOfRows | null> {
  if (events.length === 0) return null;
  const table = createReadTable(projection, readSchema);
  const keys = keysTouched(projection, events);
  const rows = await table.load(tx, [...keys.values()]);
  const blocked = await readBlockedAmong(tx, projection.tableName, [...keys.keys()]);
  const byKey = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
  // A version that started again from a snapshot may meet events that were discarded since.
  const discarded = await readDiscardsOf(tx, { kind: 'processor', name: projection.name, version: projection.version });
  const batch = await foldBatch(projection, [events], byKey, { freeze, blocked, discarded });
  // The processor will meet the event, stop there and report it.
  for (const error of batch.refused.values()) throw error;
  for (const failure of batch.skipped) await callOnSkip(projection, failure);
  await expectOrder(tx, table, batch.claims);
  for (const write of writesOf(tx, projection, table, batch, upTo)) await write();
  return batch;
}
