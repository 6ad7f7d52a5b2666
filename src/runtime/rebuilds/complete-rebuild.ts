import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition, laterPosition } from '../../events/global-position.ts';
import { furthest } from '../../projections/projection/partition.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LogPage, LogTail } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { forgetRecalled } from '../../store/processors/discards.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import { adoptTable } from '../../store/registry/adopted-table.ts';
import { keepFromLive } from '../../store/registry/inline-versions.ts';
import { deleteRebuild } from '../../store/registry/rebuilds.ts';
import type { LockedVersion } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { forgetDifferences } from '../../store/registry/verifications.ts';
import { isLastEventLost } from '../../store/statements/log-anchors.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { dropLater } from '../../store/tables/old-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { redeliverInherited } from '../dead-letters/redeliver-letters.ts';
import type { BuildProgress } from '../processors/projection-processor.ts';
import { rebuildHeldByDeadLetters } from '../versions/activation-gates.ts';
import { closeGateBriefly, maxIdleMs, maxLeft } from '../versions/closed-gate.ts';
import { expectVersion } from '../versions/expect-version.ts';
import { betweenAppends, isHeld, isLeaving } from '../versions/leave-inline.ts';
import { rebuiltFrom } from '../versions/lifecycle.ts';
import { pointViews } from '../versions/version-tables.ts';
import { oldTableSeconds } from './rebuild.ts';

export interface CompleteRebuildOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  /** The version with the new table. */
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  readonly progress: BuildProgress;
  readonly actor: string;
  readonly deadLettersAccepted: boolean;
}

/**
 * Completes a rebuild whose table is nearly current. In one transaction it pauses the version's own processor, folds the last events, and lets
 * the new table take over. Running operations end on the old table. If appends fold into the version, they wait for that moment, and fold into
 * the new table after it.
 *
 * @returns false if the table must catch up first, because appends would have to wait for long
 */
export async function completeRebuild(options: CompleteRebuildOptions): Promise<boolean> {
  const { db, log, readSchema, projection, progress } = options;
  await createReadTable(projection, readSchema).createIndexes(db);
  return betweenAppends(db, projection, async (isLive) => {
    const left = { after: progress.checkpoint, filter: projection.filter, limit: Number(maxLeft) + 1 };
    if (isLive && isTooMuch(await log.readTail(left))) return false;
    const completing = db.transaction(
      async (tx) => {
        if ((await keepFromLive(tx, projection.name, projection.version)) === isLive) return undefined;
        const before = await expectVersion(tx, projection.name, projection.version);
        // No row may go back, so the highest checkpoint of the partitions counts.
        const partitions = await lockPartitions(tx, projection.name, projection.version);
        const served = globalPosition(furthest(partitions));
        if (served > progress.checkpoint) await expectInLog(tx, projection, partitions);
        const replaced = { from: before.tableName, to: projection.tableName };
        if (!isLive) {
          const upTo = laterPosition(progress.checkpoint, served);
          // Events that processors have folded are below the horizon, so this statement sees all of them.
          const pages = pagesBetween(log, projection, progress.checkpoint, upTo);
          await takeOver(tx, options, { before, pages, upTo });
          await pointViews(tx, readSchema, [projection.name]);
          return true;
        }
        // The lock of the view may have to be waited for, so it comes before the gate.
        await pointViews(tx, readSchema, [projection.name], replaced);
        const upTo = await closeGateBriefly(tx);
        // The position of an earlier announcement would take the version back behind its new table.
        if (await isLeaving(tx, projection)) throw new NotYet(undefined);
        const tail = await log.readTail(left, tx);
        // A transaction that began to write before the gate existed.
        if (tail.horizon < upTo) throw new NotYet(undefined);
        if (isTooMuch(tail)) throw new NotYet(false);
        await takeOver(tx, options, { before, pages: [{ ...tail, upTo }], upTo }).catch((error: unknown) => {
          if (isHeld(error)) throw fencedBy(projection, error);
          throw error;
        });
        return true;
      },
      isLive ? { idleTimeoutMs: maxIdleMs } : {},
    );
    return completing.catch((error: unknown) => {
      if (error instanceof NotYet) return error.result;
      throw error;
    });
  });
}

/** Rolls back what was prepared. */
class NotYet extends Error {
  readonly result: false | undefined;

  constructor(result: false | undefined) {
    super('not yet');
    this.result = result;
  }
}

async function takeOver(
  tx: Transaction,
  { log, readSchema, projection, progress, actor, deadLettersAccepted }: CompleteRebuildOptions,
  last: { readonly before: LockedVersion; readonly pages: Pages; readonly upTo: GlobalPosition },
): Promise<void> {
  const { name, version, tableName, codeFingerprint } = projection;
  const { before, pages, upTo } = last;
  for await (const page of pages) await progress.finish(tx, page.events, page.upTo);
  if (!deadLettersAccepted) await refuseDeadLetters(tx, projection);
  const ended = await deleteRebuild(tx, name, version, 'beside');
  await forgetDifferences(tx, name, version);
  if (ended) await forgetRecalled(tx, name, version, ended.requestedAt);
  const anchor = ended?.anchor ?? null;
  await adoptTable(tx, { name, version, tableName, checkpoint: upTo, anchor, codeFingerprint });
  await forgetLeftOut(tx, before.tableName);
  // Dead letters that were discarded during the rebuild may be among those it has kept.
  await redeliverInherited(tx, { log, readSchema, projection }, 'where discarded');
  await dropLater(tx, readSchema, before.tableName, oldTableSeconds);
  await recordTransition(tx, {
    name,
    version,
    from: before.state,
    to: before.state === 'failed' ? 'ready' : before.state,
    // Rows that were found to differ are rebuilt, so they are compared once more.
    heldReason: before.heldBy === 'verification' ? null : before.heldReason,
    actor,
    reason: `rebuilt up to position ${upTo}${ended ? `${rebuiltFrom(ended)}, ${ended.eventsFolded} events folded` : ''}`,
  });
}

/** The last events are folded in memory, too, so only a new owner can try again. */
function fencedBy({ id, name, version }: Projection, cause: unknown): RefoldError {
  const message = `${id}: its rebuild did not take over, because a lock was not free in time.`;
  return new RefoldError('PROCESSOR_FENCED', message, { name, version }, { cause });
}

/**
 * The processors of a read store may have taken in events that the log has lost. Their next claims notice it, and give up their checkpoints. Until
 * then, the log may not be complete up to there.
 */
async function expectInLog(
  tx: Queryable,
  { id, name, version }: Projection,
  partitions: Awaited<ReturnType<typeof lockPartitions>>,
): Promise<void> {
  const log = tx.elsewhere?.log;
  const last = partitions.find(({ checkpoint }) => checkpoint === furthest(partitions));
  if (!log || !last || !(await isLastEventLost(log, last.checkpoint, last.anchor))) return;
  const message = `${id}: its rows are of position ${last.checkpoint}, and the log has lost an event up to there.`;
  throw new RefoldError('PROCESSOR_FENCED', message, { name, version });
}

/**
 * The last events may have added dead letters. The error then rolls back this transaction, and the rebuild's owner starts again, like one that was
 * fenced off.
 */
async function refuseDeadLetters(tx: Queryable, projection: Projection): Promise<void> {
  const held = await rebuildHeldByDeadLetters(tx, projection);
  if (held === null) return;
  const { id, name, version } = projection;
  throw new RefoldError('PROCESSOR_FENCED', `${id}: its rebuild does not take over: ${held}`, { name, version });
}

/** The last events, of which only a page is in memory; at least one page, even if it is empty. */
type Pages = Iterable<Page> | AsyncIterable<Page>;
type Page = Pick<LogPage, 'events' | 'upTo'>;

async function* pagesBetween(
  log: EventLog,
  { filter }: Projection,
  from: GlobalPosition,
  upTo: GlobalPosition,
): AsyncGenerator<Page> {
  let after = from;
  do {
    const page = await log.readAll({ after, upTo, filter, limit: 10_000 });
    yield page;
    after = page.upTo;
  } while (after < upTo);
}

/** Whether appends would have to wait for long until the last events are folded, which may also be too large for one page. */
function isTooMuch({ events, upTo, horizon }: LogTail): boolean {
  return events.length > maxLeft || (events.length > 0 && upTo < horizon);
}
