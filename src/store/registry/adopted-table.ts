import { type QueryCreator, sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import { checkpointChannel } from '../processors/checkpoint-notifications.ts';
import { countOfSkips } from '../processors/left-out.ts';
import { sendNotifications } from '../statements/notifying.ts';
import type { RefoldTables } from '../statements/refold-tables.generated.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

export interface AdoptedTable {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
  /** The anchor of the checkpoint. @default unknown */
  readonly anchor?: string | null;
  readonly codeFingerprint: string;
}

/**
 * Moves the version to another table, which is complete up to `checkpoint`. Its processors continue from there under new epochs, and their
 * owners drop their cached rows of the old table.
 */
export async function adoptTable(db: Queryable, adopted: AdoptedTable): Promise<void> {
  await run(
    db,
    refoldTables
      .with('moved', (move) => restartProcessors(move, adopted))
      .updateTable('refold.projections')
      .set(adoption(adopted))
      .where('name', '=', adopted.name)
      .where('version', '=', adopted.version),
  );
}

/**
 * Moves the version to another table, which may be behind the old one. Its processors go back to `checkpoint` under new epochs, and the
 * recorded changes of the old rows are deleted. Listeners are notified of the new position.
 */
export async function beginAgain(db: Queryable, begun: AdoptedTable): Promise<void> {
  const { name, version, checkpoint } = begun;
  const payload = `${name}@${version}:${checkpoint}`;
  const placed = db.elsewhere?.placement !== undefined;
  const notified = await run(
    db,
    refoldTables
      .with('moved', (move) => restartProcessors(move, begun).set({ events_folded: 0, rows_written: 0 }))
      .with('forgotten', (forget) =>
        forget.deleteFrom('refold.changes').where('name', '=', name).where('version', '=', version),
      )
      .with('renamed', (rename) =>
        rename
          .updateTable('refold.projections')
          .set(adoption(begun))
          .where('name', '=', name)
          .where('version', '=', version),
      )
      .selectNoFrom(
        placed ? sql`${payload}::text`.as('payload') : sql`pg_notify(${checkpointChannel}, ${payload})`.as('notified'),
      ),
  );
  await sendNotifications(db, checkpointChannel, notified);
}

/** Sets the processors of the version to the position of the table, and fences their owners. */
function restartProcessors(
  tables: QueryCreator<RefoldTables>,
  { name, version, tableName, checkpoint, anchor = null }: AdoptedTable,
) {
  return tables
    .updateTable('refold.processors')
    .set({
      checkpoint,
      anchor,
      epoch: sql`epoch + 1`,
      status: 'idle',
      error: null,
      floors: null,
      rewrites: 0n,
      updated_at: sql`now()`,
      events_skipped: sql`case when partition = 0 then ${countOfSkips(tableName)} else 0 end`,
    })
    .where('name', '=', name)
    .where('version', '=', version);
}

function adoption({ tableName, codeFingerprint }: AdoptedTable) {
  return { table_name: tableName, generation: sql<number>`generation + 1`, code_fingerprint: codeFingerprint };
}
