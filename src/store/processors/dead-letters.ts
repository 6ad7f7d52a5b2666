import { sql } from 'kysely';
import type { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { keyText, type RowKey } from '../../projections/projection/projection.ts';
import { stackOf, storedText } from '../../thrown.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';
import type { LetterError } from '../statements/stored-json.ts';

/** An event that is not folded into a read table. */
export interface DeadLetter {
  readonly id: bigint;
  /** The row's key as JSON; null if the key could not be computed. */
  readonly key: RowKey | null;
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  /** Null if the event waits behind an earlier one of its row. */
  readonly error: LetterError | null;
  /** The number of attempts. */
  readonly attempts: number;
  readonly at: string;
}

export interface NewDeadLetter {
  readonly key: string | null;
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  readonly error: LetterError | null;
}

/** Converts an error to the form that a dead letter stores. */
export function letterError(error: RefoldError): LetterError {
  const stack = stackOf(error.cause) ?? error.stack;
  return { message: error.message, ...(stack === undefined ? {} : { stack: storedText(stack) }) };
}

interface Table {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
}

/** Stores the dead letters, with one statement. */
export async function insertDeadLetters(db: Queryable, table: Table, letters: readonly NewDeadLetter[]): Promise<void> {
  await db.query({
    text: `
      insert into refold.dead_letters (name, version, table_name, key, position, event_type, stream_id, error)
      select $1, $2, $3, key::jsonb, position, type, "streamId", error
      from json_to_recordset($4) as letter (key text, position bigint, type text, "streamId" text, error jsonb)
      -- an event of which no key is known fails in each partition
      on conflict do nothing`,
    values: [
      table.name,
      table.version,
      table.tableName,
      JSON.stringify(letters.map((letter) => ({ ...letter, position: letter.position.toString() }))),
    ],
  });
}

/** The keys of the rows that are blocked by a dead letter, as `keyText` writes them. */
export async function readBlockedKeys(db: Queryable, tableName: string): Promise<string[]> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.dead_letters')
      .select('key')
      .distinct()
      .where('table_name', '=', tableName)
      .where('key', 'is not', null)
      .$narrowType<{ key: RowKey }>(),
  );
  return rows.map(({ key }) => keyText(key));
}

/** Like {@link readBlockedKeys}, but only among these keys. Keys are passed and returned as `keyText` writes them. */
export async function readBlockedAmong(db: Queryable, tableName: string, keys: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ key: NonNullable<TableRow<'refold.dead_letters'>['key']> }>({
    name: 'read blocked among',
    text: `
      select distinct key
      from refold.dead_letters
      where table_name = $1 and key in (select jsonb_array_elements($2::jsonb))`,
    values: [tableName, `[${keys.join(',')}]`],
  });
  return rows.map(({ key }) => keyText(key));
}

/** The columns of {@link DeadLetter}. */
const letterColumns = [
  'id',
  'key',
  'position',
  'event_type as type',
  'stream_id as streamId',
  'error',
  'attempts',
  'at',
] as const;

/** The dead letters of a table in log order; only those of one row if a key is given. */
export async function readDeadLetters(db: Queryable, tableName: string, key?: string): Promise<DeadLetter[]> {
  let letters = refoldTables
    .selectFrom('refold.dead_letters')
    .select(letterColumns)
    .where('table_name', '=', tableName)
    .orderBy('position')
    .orderBy('id');
  if (key !== undefined) letters = letters.where('key', '=', sql<RowKey>`${key}::jsonb`);
  return run(db, letters);
}

/** The dead letters of the rows of which these are, in log order. A dead letter without a key is alone. */
export async function readDeadLettersBeside(
  db: Queryable,
  tableName: string,
  ids: readonly bigint[],
): Promise<DeadLetter[]> {
  const columns = 'letter.id, letter.key, position, event_type as type, stream_id as "streamId", error, attempts, at';
  return db.query<DeadLetter>({
    text: `
      with named as materialized (
        select id, key from refold.dead_letters where table_name = $1 and id = any ($2)
      ), beside as (
        select ${columns}
        from (select distinct key from named where key is not null) as rows
        join refold.dead_letters as letter on letter.table_name = $1 and letter.key = rows.key
        union all
        select ${columns}
        from named
        join refold.dead_letters as letter on letter.id = named.id
        where named.key is null
      )
      select * from beside order by position, id`,
    values: [tableName, ids],
  });
}

export interface DeadLetterCount {
  readonly name: string;
  readonly version: number;
  readonly letters: number;
}

/** The number of dead letters per version that is not retired, in the table in use; those of a version are counted up to `upTo`. @default all */
export async function countDeadLetters(db: Queryable, upTo: number | null = null): Promise<DeadLetterCount[]> {
  if (upTo === null)
    return db.query<DeadLetterCount>({
      name: 'count dead letters',
      text: `
        select name, version, letters
        from refold.projections
        join (
          select table_name, count(*)::integer as letters from refold.dead_letters group by table_name
        ) as counted using (table_name)
        where state <> 'retired'`,
    });
  return db.query<DeadLetterCount>({
    name: 'count dead letters within',
    // The order is that of an index. Without it, the planner may scan the whole table for each version, if one of them has most of the letters.
    text: `
      select name, version, letters
      from refold.projections as projection
      cross join lateral (
        select count(*)::integer as letters
        from (
          select from refold.dead_letters
          where table_name = projection.table_name
          order by key, position
          limit $1
        ) as letter
      ) as counted
      where state <> 'retired' and letters > 0`,
    values: [upTo],
  });
}

export async function deleteDeadLetters(db: Queryable, ids: readonly bigint[]): Promise<void> {
  await run(
    db,
    refoldTables.deleteFrom('refold.dead_letters').where('id', '=', ({ fn, val }) => fn.any(val(ids))),
  );
}

/** Records a failed retry with its error. */
export async function recordAttempt(db: Queryable, id: bigint, error: LetterError): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.dead_letters')
      .set({ attempts: sql`attempts + 1`, error: JSON.stringify(error), at: sql`now()` })
      .where('id', '=', id),
  );
}

/**
 * Call this after changing rows outside of the version's processor: its owner then drops its cached rows, and subscribers read again. The
 * caller must hold the lock on the processor's row.
 */
export async function invalidateRows(db: Queryable, name: string, version: number): Promise<void> {
  await run(
    db,
    refoldTables
      .with('fenced', (fence) =>
        fence
          .updateTable('refold.processors')
          .set({
            epoch: sql`epoch + 1`,
            status: sql`case when status = 'stopped' then 'idle' else status end`,
            owner: sql`case when status = 'stopped' then null else owner end`,
            error: null,
            updated_at: sql`now()`,
          })
          .where('name', '=', name)
          .where('version', '=', version),
      )
      .updateTable('refold.projections')
      .set({ generation: sql`generation + 1` })
      .where('name', '=', name)
      .where('version', '=', version),
  );
}
