import { beginning, type Projection } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { fold, foldSteps } from '../../src/projections/fold/fold.ts';
import type { EventLog } from '../../src/store/event-log.ts';
import type { Queryable } from '../../src/store/statements/statement.ts';
import { createReadTable } from '../../src/store/tables/read-table.ts';

/** The expected read table of a projection: one fold of the whole log, in memory, event by event. */
export async function foldedTable(log: EventLog, projection: Projection): Promise<Map<string, unknown>> {
  const rows = new Map<string, Row | null>();
  const memory = {
    get: (text: string) => rows.get(text) ?? null,
    set: (text: string, _: unknown, row: Row | null) => void rows.set(text, row),
  };
  const upTo = await log.horizon();
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter: projection.filter, limit: 10_000 });
    fold(projection, foldSteps(projection, page.events), memory, { freeze: false });
    after = page.upTo;
  }
  return new Map([...rows].flatMap(([text, row]) => (row ? [[text, projection.codec.encode(row)]] : [])));
}

/** The rows of the read table, in the form of {@link foldedTable}. */
export async function storedTable(
  db: Queryable,
  projection: Projection,
  readSchema = 'read_models',
): Promise<Map<string, unknown>> {
  const names = Object.keys(projection.columns);
  const columns = names.map((name) => `"${(projection.sqlNames as Record<string, string>)[name]}" as "${name}"`);
  const rows = await db.query<Record<string, unknown>>({
    text: `select ${columns.join(', ')} from "${readSchema}"."${projection.tableName}"`,
  });
  const table = createReadTable(projection, readSchema);
  return new Map(
    rows.map((raw) => {
      const row = projection.codec.decode(raw);
      return [
        JSON.stringify(table.keyOf(row), (_, value) => (typeof value === 'bigint' ? value.toString() : value)),
        projection.codec.encode(row),
      ];
    }),
  );
}
