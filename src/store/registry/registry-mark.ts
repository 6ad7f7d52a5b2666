import { onlyRow, type Queryable } from '../statements/statement.ts';
import { inlineStatus } from './inline-versions.ts';
import { type RegisteredVersion, type RegistryRow, registered, registryText } from './registry.ts';

/**
 * A text that differs whenever the registry does, apart from what each batch writes: checkpoints, owners, counts and times. Processes with hundreds
 * of versions ask for it every second; the whole registry takes ten times as long.
 */
export async function readRegistryMark(db: Queryable): Promise<string> {
  const rows = await db.query<{ mark: string }>({ name: 'read registry mark', text: `select ${mark} as mark` });
  return onlyRow(rows).mark;
}

/** All versions, ordered by name and version, with their mark in the same snapshot: a change that is taken back soon leaves no wrong one. */
export async function readMarkedRegistry(
  db: Queryable,
): Promise<{ readonly mark: string; readonly versions: readonly RegisteredVersion[] }> {
  const rows = await db.query<RegistryRow & { readonly mark: string }>({
    name: 'read marked registry',
    text: `select registry.*, ${mark} as mark from (${registryText('')}) as registry order by name, version`,
  });
  // Without versions, there is nothing in the mark either.
  return { mark: rows[0]?.mark ?? '', versions: rows.map(({ mark: _, ...row }) => registered(row)) };
}

/** The hash of a row. Its key is the seed for the others, so two rows that exchange their values change the sum. */
function hashed(key: string, columns: string): string {
  return `sum(hash_record_extended(row(${columns}), hash_record_extended(row(${key}), 0)))`;
}

// Sums of PostgreSQL's 64-bit hashes, which need no order.
const mark = `concat_ws(
    ' ',
    (
      select ${hashed(
        'name, version',
        `state, held_by, held_reason, paused_at, paused_by, paused_reason, table_name, generation, table_fingerprint,
         code_fingerprint, definition ->> 'startAfter', state_changed_at`,
      )}
      from refold.projections
    ),
    (
      select ${hashed('name, version, partition', `partitions, status = 'stopped', error`)}
      from refold.processors
    ),
    (
      select ${hashed('name, version', inlineStatus('inline_versions'))}
      from refold.inline_versions
    ),
    (
      select ${hashed('name, version', 'percent, header, header_value')}
      from refold.canaries
    ),
    (
      select ${hashed('name, version', 'one_of, started_at')}
      from refold.shadows
      where stopped_at is null
    )
  )`;
