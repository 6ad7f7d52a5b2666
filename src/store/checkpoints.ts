import { RefoldError } from '../errors.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import type { Queryable } from './statement.ts';

/** Channel that tells `name@version:checkpoint` after each batch. */
export const checkpointChannel = 'refold_checkpoints';

/**
 * What is claimed: the processor of a version, or the rebuild of its table. Both have a checkpoint, an owner and an epoch, each in
 * a table of its own.
 */
export type ProcessorKind = 'processor' | 'rebuild';

const tableOf = { processor: 'refold.processors', rebuild: 'refold.rebuilds' } as const;
const firstPartition = { processor: ' and partition = 0', rebuild: '' } as const;

export interface ProcessorClaim {
  readonly kind: ProcessorKind;
  readonly name: string;
  readonly version: number;
  /** The fence: batches commit only while the processor's row still has this epoch. */
  readonly epoch: bigint;
  readonly checkpoint: GlobalPosition;
}

/** Makes `owner` the one whose batches commit; batches of any former owner fail from now on. */
export async function claimProcessor(
  db: Queryable,
  kind: ProcessorKind,
  name: string,
  version: number,
  owner: string,
): Promise<ProcessorClaim> {
  const rows = await db.query<{ epoch: bigint; checkpoint: GlobalPosition }>({
    text: `
      update ${tableOf[kind]}
      set epoch = epoch + 1, owner = $3, status = 'running', error = null, started_at = now(), updated_at = now()
      where name = $1 and version = $2${firstPartition[kind]}
      returning epoch, checkpoint`,
    values: [name, version, owner],
  });
  const claimed = rows[0];
  if (!claimed)
    throw new RefoldError('INVALID_TRANSITION', `${name}@${version} is not in the registry any more.`, {
      name,
      version,
    });
  return { kind, name, version, ...claimed };
}

export interface Advance {
  readonly claim: ProcessorClaim;
  readonly from: GlobalPosition;
  readonly to: GlobalPosition;
  readonly events: number;
  readonly rows: number;
}

/**
 * Moves the checkpoint within the transaction that writes the rows, and tells listeners when it commits.
 *
 * @throws RefoldError `PROCESSOR_FENCED` where another owner took over, or the checkpoint is not where this owner left it.
 */
export async function advanceCheckpoint(db: Queryable, { claim, from, to, events, rows }: Advance): Promise<void> {
  const moved = await db.query({
    name: `advance ${claim.kind}`,
    text: `
      with moved as (
        update ${tableOf[claim.kind]}
        set checkpoint = $5, events_folded = events_folded + $6, rows_written = rows_written + $7, updated_at = now()
        where name = $1 and version = $2 and epoch = $3 and checkpoint = $4${firstPartition[claim.kind]}
        returning name, version, checkpoint
      )
      select ${claim.kind === 'processor' ? `pg_notify('${checkpointChannel}', name || '@' || version || ':' || checkpoint)` : 'null'} from moved`,
    values: [claim.name, claim.version, claim.epoch, from, to, events, rows],
  });
  if (moved.length === 0) {
    throw new RefoldError(
      'PROCESSOR_FENCED',
      `${claim.name}@${claim.version}: another owner has taken over (epoch ${claim.epoch} is past).`,
      {
        name: claim.name,
        version: claim.version,
      },
    );
  }
}

/** Keeps which keys a batch changed, for subscriptions: theirs to follow, and to resume from. */
export async function insertChanges(
  db: Queryable,
  claim: ProcessorClaim,
  checkpoint: GlobalPosition,
  upserted: string,
  deleted: string,
): Promise<void> {
  await db.query({
    name: 'insert changes',
    text: `
      insert into refold.changes (name, version, checkpoint, upserted, deleted)
      values ($1, $2, $3, $4, $5)`,
    values: [claim.name, claim.version, checkpoint, upserted, deleted],
  });
}

/** Forgets changes that no subscription can want any more. */
export async function pruneChanges(db: Queryable, claim: ProcessorClaim, keepMinutes: number): Promise<void> {
  await db.query({
    text: `
      delete from refold.changes
      where name = $1 and version = $2 and at < now() - make_interval(mins => $3)`,
    values: [claim.name, claim.version, keepMinutes],
  });
}

/** The processor goes on no more by itself; its owner keeps it, so that no other process fails at the same place. */
export async function recordStop(db: Queryable, claim: ProcessorClaim, error: unknown): Promise<void> {
  await db.query({
    text: `
      update ${tableOf[claim.kind]}
      set status = 'stopped', error = $4, updated_at = now()
      where name = $1 and version = $2 and epoch = $3${firstPartition[claim.kind]}`,
    values: [claim.name, claim.version, claim.epoch, JSON.stringify(error)],
  });
}

/** The owner lets go in an orderly way. */
export async function releaseProcessor(db: Queryable, claim: ProcessorClaim): Promise<void> {
  await db.query({
    text: `
      update ${tableOf[claim.kind]}
      set owner = null, status = case status when 'stopped' then status else 'idle' end, updated_at = now()
      where name = $1 and version = $2 and epoch = $3${firstPartition[claim.kind]}`,
    values: [claim.name, claim.version, claim.epoch],
  });
}
