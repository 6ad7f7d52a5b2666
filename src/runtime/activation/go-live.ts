import type { Logger } from 'pino';
import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { furthest } from '../../projections/declaration/partition.ts';
import { keyText, type Projection, storedIn } from '../../projections/declaration/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import { foldBatch, keysTouched, writesOf } from '../../store/inline/folded-batch.ts';
import { readAppending } from '../../store/inline/inline-locks.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { pruneChanges } from '../../store/processors/checkpoints.ts';
import { readBlockedAmong } from '../../store/processors/dead-letters.ts';
import { readDiscards } from '../../store/processors/discards.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import {
  becomeLive,
  closeGate,
  keepFromLive,
  limitLockWaits,
  readInlineVersions,
  readLast,
  settleLeave,
} from '../../store/registry/inline-versions.ts';
import { readVersionStatus } from '../../store/registry/version-positions.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';
import { expectOrder } from '../../store/tables/write-rows.ts';
import { keepChangesMinutes, pruneEveryMilliseconds } from '../processors/pruning.ts';
import { createRounds, type Rounds } from '../scheduling/rounds.ts';
import { expectVersion } from '../versions/expect-version.ts';
import { isHeld } from '../versions/leave-inline.ts';
import type { TableWatch } from '../versions/table-watch.ts';
import type { Versions } from '../versions/versions.ts';

export interface GoLiveOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly versions: Versions;
  readonly tables: Pick<TableWatch, 'damageOf'>;
  readonly freeze: boolean;
  readonly logger: Logger;
}

const lookMilliseconds = 250;
// Appends of all families wait while this waits for those under way; most end within milliseconds.
const gateTimeout = '100ms';
// So do they while this process is frozen or out of reach: the server gives up on it then.
const mostIdleMs = 500;
// An append that is open for longer is likely to outlast the time above: the gate is not asked for.
const mostSeconds = 0.1;
const retryAtMost = 30_000;
// The events left are folded while appends wait: a processor that is further behind catches up first.
const mostLeft = 200n;
// A process that can't fold, such as an older one during a deployment, is likely to append again.
const passedSeconds = 5;

/** Has inline versions join the appends as soon as their processors have caught up. Any process that maintains them can do it. */
export function createGoLive(options: GoLiveOptions): Rounds {
  const { db, versions, logger } = options;
  const inline = options.projections.filter(({ mode }) => mode === 'inline');
  const waits = new Map<string, { readonly until: number; readonly milliseconds: number }>();
  let lastPrune = Date.now();
  const rounds = createRounds(lookMilliseconds, look, (error) =>
    logger.warn(
      { err: error },
      `looking for inline versions that have caught up failed; trying again. ${String(error)}`,
    ),
  );
  const unsubscribe = versions.onChange(() => rounds.soon());

  async function look(signal: AbortSignal): Promise<void> {
    if (inline.length === 0) return;
    const known = await readInlineVersions(db);
    for (const projection of inline) {
      const found = known.find(({ name, version }) => name === projection.name && version === projection.version);
      if (signal.aborted) return;
      if (found?.status === 'leaving') await settleLeave(db, projection.name, projection.version);
      if (found?.status !== 'building' || cannotGoOn(projection)) continue;
      if ((found.secondsSincePassed ?? passedSeconds) < passedSeconds) continue;
      const wait = waits.get(projection.id);
      if ((wait?.until ?? 0) > Date.now()) continue;
      if (await tryGoLive(projection)) waits.delete(projection.id);
      else {
        const milliseconds = Math.min(retryAtMost, (wait?.milliseconds ?? lookMilliseconds) * 2);
        waits.set(projection.id, { until: Date.now() + milliseconds, milliseconds });
      }
    }
    await prune(known.filter(({ status }) => status === 'live'));
  }

  /** Its appends would be refused. */
  function cannotGoOn(projection: Projection): boolean {
    return versions.stopped().has(projection.id) || options.tables.damageOf(versions.stored(projection)) !== null;
  }

  /** False where appends that are under way would hold up all others for too long. */
  async function tryGoLive(projection: Projection): Promise<boolean> {
    try {
      const position = await goLive(options, projection);
      if (position !== null)
        logger.info(
          { projection: projection.id, position: position.toString() },
          `${projection.id} commits with appends`,
        );
      return true;
    } catch (error) {
      // What the database refuses of the last events, the processor meets, and does as is declared.
      if (isHeld(error) || isRowRefusal(error)) return false;
      throw error;
    }
  }

  /** A live version has no processor that would. */
  async function prune(live: readonly { readonly name: string; readonly version: number }[]): Promise<void> {
    if (Date.now() - lastPrune < pruneEveryMilliseconds) return;
    lastPrune = Date.now();
    for (const version of live) await pruneChanges(db, version, keepChangesMinutes);
  }

  return {
    soon: rounds.soon,
    stop() {
      unsubscribe();
      return rounds.stop();
    },
  };
}

/**
 * Makes a version live that has caught up: while no append is under way, the last events are folded, in one transaction. Appends wait for it
 * a moment, so it asks for that only where it is likely to be short.
 *
 * @returns the position up to which its table was complete then; null where it is not near the head, not maintained, or live already, or
 *   where an append is under way for long
 * @throws RefoldError `DATABASE_ERROR` with `sqlState` 55P03 where an append is under way for too long
 */
export async function goLive(
  options: Pick<GoLiveOptions, 'db' | 'log' | 'readSchema' | 'freeze'>,
  projection: Projection,
): Promise<GlobalPosition | null> {
  const { db, log } = options;
  const { name, version } = projection;
  const status = await readVersionStatus(db, name, version);
  if (!status || (status.state !== 'ready' && status.state !== 'active')) return null;
  if ((await log.horizon()) - status.checkpoint > mostLeft) return null;
  if ((await readAppending(db)).some(({ seconds }) => (seconds ?? 0) > mostSeconds)) return null;
  return db.transaction(
    async (tx) => {
      // All else that may take a wait comes before the gate.
      await limitLockWaits(tx, gateTimeout);
      if (!(await keepFromLive(tx, name, version))) return null;
      const { state, tableName } = await expectVersion(tx, name, version);
      if (state !== 'ready' && state !== 'active') return null;
      const partitions = await lockPartitions(tx, name, version);
      const checkpoint = globalPosition(furthest(partitions));
      // Rows are at several positions for a while after partitions were put together.
      if (partitions.length !== 1 || partitions[0]?.checkpoint !== checkpoint) return null;
      await closeGate(tx);
      const known = (await readInlineVersions(tx)).find((one) => one.name === name && one.version === version);
      const head = await readLast(tx);
      if (known?.status !== 'building' || head - checkpoint > mostLeft) return null;
      // On this connection: the pool may have no other one for a while, and all appends wait.
      const tail = await log.readTail(
        { after: checkpoint, filter: projection.filter, limit: Number(mostLeft) + 1 },
        tx,
      );
      // A writer whose transaction began before there was a gate.
      if (tail.horizon < head) return null;
      await foldLeft(tx, options, storedIn(projection, tableName), tail.events, head);
      await becomeLive(tx, name, version, head);
      return head;
    },
    { idleTimeoutMs: mostIdleMs },
  );
}

async function foldLeft(
  tx: Queryable,
  { readSchema, freeze }: Pick<GoLiveOptions, 'readSchema' | 'freeze'>,
  projection: Projection,
  events: readonly RecordedEvent[],
  upTo: GlobalPosition,
): Promise<void> {
  if (events.length === 0) return;
  const table = createReadTable(projection, readSchema);
  const keys = keysTouched(projection, events);
  const rows = await table.load(tx, [...keys.values()]);
  const blocked = await readBlockedAmong(tx, projection.tableName, [...keys.keys()]);
  const byKey = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
  // A version that began again from a snapshot meets events that were thrown away since.
  const discarded = await readDiscards(tx, projection.name, projection.version);
  const batch = foldBatch(projection, [events], byKey, { freeze, blocked, discarded });
  // Its processor meets the event, stops there and says so.
  for (const error of batch.refused.values()) throw error;
  for (const failure of batch.skipped) projection.onError.onSkip?.(failure);
  await expectOrder(tx, table, batch.claims);
  for (const write of writesOf(tx, projection, table, batch, upTo)) await write();
}
