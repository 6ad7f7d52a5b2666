import type { GlobalPosition } from '../events/global-position.ts';
import type { Queryable } from './statement.ts';

/** A rebuild that has been asked for and is not finished. */
export interface Rebuild {
  readonly name: string;
  readonly version: number;
  /** The table that it fills. */
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
  readonly owner: string | null;
  readonly status: 'idle' | 'running' | 'stopped';
  readonly error: { readonly message: string; readonly at: string } | null;
  readonly requestedBy: string;
  readonly reason: string;
  readonly requestedAt: string;
}

export async function readRebuilds(db: Queryable): Promise<Rebuild[]> {
  return db.query<Rebuild>({
    name: 'read rebuilds',
    text: `
      select
        name,
        version,
        table_name as "tableName",
        checkpoint,
        owner,
        status,
        error,
        requested_by as "requestedBy",
        reason,
        requested_at as "requestedAt"
      from refold.rebuilds
      order by name, version`,
  });
}

export interface RebuildRequest {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly actor: string;
  readonly reason: string;
}

/** Asks for a rebuild; false where one is under way already. */
export async function insertRebuild(db: Queryable, request: RebuildRequest): Promise<boolean> {
  const rows = await db.query({
    text: `
      insert into refold.rebuilds (name, version, table_name, requested_by, reason)
      values ($1, $2, $3, $4, $5)
      on conflict do nothing
      returning name`,
    values: [request.name, request.version, request.tableName, request.actor, request.reason],
  });
  return rows.length > 0;
}

/** Ends a rebuild and gives what it was; undefined where there is none. */
export async function deleteRebuild(
  db: Queryable,
  name: string,
  version: number,
): Promise<{ tableName: string } | undefined> {
  const rows = await db.query<{ tableName: string }>({
    text: 'delete from refold.rebuilds where name = $1 and version = $2 returning table_name as "tableName"',
    values: [name, version],
  });
  return rows[0];
}

/** Where the version's own processor is; it can't move until the transaction ends. */
export async function lockCheckpoint(
  db: Queryable,
  name: string,
  version: number,
): Promise<GlobalPosition | undefined> {
  const rows = await db.query<{ checkpoint: GlobalPosition }>({
    text: `
      select checkpoint
      from refold.processors
      where name = $1 and version = $2 and partition = 0
      for update`,
    values: [name, version],
  });
  return rows[0]?.checkpoint;
}

export interface AdoptedTable {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
  readonly codeFingerprint: string;
}

/**
 * The version's rows are in another table from now on, complete up to `checkpoint`. Its processor goes on from there under a new
 * epoch, so that its owner drops the rows that it remembers of the old table.
 */
export async function adoptTable(db: Queryable, adopted: AdoptedTable): Promise<void> {
  await db.query({
    text: `
      with moved as (
        update refold.processors
        set checkpoint = $4, epoch = epoch + 1, status = 'idle', error = null, updated_at = now()
        where name = $1 and version = $2 and partition = 0
      )
      update refold.projections
      set table_name = $3, generation = generation + 1, code_fingerprint = $5
      where name = $1 and version = $2`,
    values: [adopted.name, adopted.version, adopted.tableName, adopted.checkpoint, adopted.codeFingerprint],
  });
}
