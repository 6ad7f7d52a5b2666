import { beginning, type GlobalPosition, globalPosition } from '../../src/events/global-position.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../src/projections/projection/projection.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { checkpointChannel } from '../../src/store/processors/checkpoint-notifications.ts';
import { createReadSchema, createReadTable } from '../../src/store/tables/read-table.ts';

export const readSchema = 'read_models';

export interface Batch {
  readonly upserted?: readonly Row[];
  readonly deleted?: readonly RowKey[];
}

/** Writes to a version's read table as its processor does: rows, checkpoint, changes and notification in one transaction. */
export interface ReadModelWriter {
  readonly projection: Projection;
  /** The checkpoint of the last batch. */
  readonly checkpoint: GlobalPosition;
  /** Resolves to the checkpoint after the batch. */
  write(batch: Batch, options?: { readonly notify?: boolean; readonly to?: GlobalPosition }): Promise<GlobalPosition>;
  /** All rows, by the text of their key. */
  readAll(): Promise<Map<string, Row>>;
}

/** Creates the table and the registry's rows. */
export async function createReadModelWriter(db: Database, projection: Projection): Promise<ReadModelWriter> {
  const table = createReadTable(projection, readSchema);
  const { name, version } = projection;
  let checkpoint = beginning;
  await createReadSchema(db, readSchema);
  await table.create(db);
  await table.createIndexes(db);
  await db.query({
    text: `
      insert into refold.projections
        (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
      values ($1, $2, 'active', $3, $4, '', '', '{}')`,
    values: [name, version, readSchema, projection.tableName],
  });
  await db.query({ text: 'insert into refold.processors (name, version) values ($1, $2)', values: [name, version] });

  return {
    projection,
    get checkpoint() {
      return checkpoint;
    },
    async write({ upserted = [], deleted = [] }, { notify = true, to = globalPosition(checkpoint + 1n) } = {}) {
      await db.transaction(async (tx) => {
        if (upserted.length > 0) await table.upsert(tx, upserted);
        if (deleted.length > 0) await table.remove(tx, deleted);
        await tx.query({
          text: 'update refold.processors set checkpoint = $3 where name = $1 and version = $2',
          values: [name, version, to],
        });
        if (upserted.length + deleted.length > 0) {
          await tx.query({
            text: 'insert into refold.changes (name, version, checkpoint, upserted, deleted) values ($1, $2, $3, $4, $5)',
            values: [name, version, to, keysJson(upserted.map(table.keyOf)), keysJson(deleted)],
          });
        }
        if (notify) {
          await tx.query({ text: 'select pg_notify($1, $2)', values: [checkpointChannel, `${name}@${version}:${to}`] });
        }
      });
      checkpoint = to;
      return to;
    },
    async readAll() {
      const raw = await db.query<{ row: Record<string, unknown> }>({
        text: `select to_json(t) as row from ${readSchema}.${projection.tableName} as t`,
      });
      const keys = raw.map(({ row }) =>
        projection.keyColumns.map((column) => row[projection.sqlNames[column] as string]),
      );
      const rows = await table.load(db, keys);
      return new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    },
  };
}

function keysJson(keys: readonly RowKey[]): string {
  return `[${keys.map(keyText).join(',')}]`;
}
