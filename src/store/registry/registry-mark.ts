import { onlyRow, type Queryable } from '../statements/statement.ts';
import { inlineStatus } from './inline-versions.ts';

/**
 * A text that differs whenever the registry does, apart from what each batch writes: checkpoints, owners, counts and times. Processes with hundreds
 * of versions ask for it every second; the whole registry would take thirty times as long to read.
 *
 * It is a sum of hashes of rows (PostgreSQL's 64-bit hashes), so it costs no sorting. Each row has its key in its hash.
 */
export async function readRegistryMark(db: Queryable): Promise<string> {
  const rows = await db.query<{ mark: string }>({
    name: 'read registry mark',
    text: `
      select concat_ws(
        ' ',
        (
          select sum(hash_record_extended(row(
            name, version, state, held_by, held_reason, paused_at, paused_by, paused_reason, table_name, generation,
            table_fingerprint, code_fingerprint, definition ->> 'startAfter', state_changed_at, arriving_from, moved_to
          ), 0))
          from refold.projections
        ),
        (
          select sum(hash_record_extended(row(name, version, partition, partitions, status = 'stopped', error), 0))
          from refold.processors
        ),
        (
          select sum(hash_record_extended(row(name, version, ${inlineStatus('inline_versions')}), 0))
          from refold.inline_versions
        ),
        (
          select sum(hash_record_extended(row(name, version, percent, header, header_value), 0))
          from refold.canaries
        ),
        (
          select sum(hash_record_extended(row(name, version, one_of, started_at), 0))
          from refold.shadows
          where stopped_at is null
        )
      ) as mark`,
  });
  return onlyRow(rows).mark;
}
