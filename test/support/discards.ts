import { sql } from 'kysely';
import type { RowKey } from '../../src/projections/projection/projection.ts';
import { type Queryable, refoldTables, run } from '../../src/store/statements/statement.ts';

/** The discarded events of a version, in log order. */
export function listDiscards(db: Queryable, name: string, version: number) {
  return run(
    db,
    refoldTables
      .selectFrom('refold.discards')
      .select(sql<RowKey | null>`nullif(key, 'null')`.as('key')) // JSON's null stands for no key
      .select(['position', 'event_type as type', 'stream_id as streamId', 'actor', 'reason'])
      .where('recalled_at', 'is', null)
      .where('name', '=', name)
      .where('version', '=', version)
      .orderBy('position')
      .orderBy('key'),
  );
}
