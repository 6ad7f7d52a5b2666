import type { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { keyText, type RowKey } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';

/** An event that is not folded into a read table. */
export interface DeadLetter {
  readonly id: bigint;
  /** The row's key as JSON; null if the key could not be computed. */
  readonly key: RowKey | null;
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  /** Null if the event waits behind an earlier one of its row. */
  readonly error: { readonly message: string; readonly stack?: string } | null;
  /** The number of attempts. */
  readonly attempts: number;
  readonly at: string;
}

export interface NewDeadLetter {
  readonly key: string | null;
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  readonly error: { readonly message: string; readonly stack?: string } | null;
}

/** Converts an error to the form that a dead letter stores. */
export function letterError(error: RefoldError): { message: string; stack?: string } {
  const stack = error.cause instanceof Error ? error.cause.stack : error.stack;
  return { message: error.message, ...(stack === undefined ? {} : { stack }) };
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
      from json_to_recordset($4) as letter (key text, position bigint, type text, "streamId" text, error jsonb)`,
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
  const rows = await db.query<{ key: RowKey }>({
    text: 'select distinct key from refold.dead_letters where table_name = $1 and key is not null',
    values: [tableName],
  });
  return rows.map(({ key }) => keyText(key));
}

/** Like {@link readBlockedKeys}, but only among these keys. Keys are passed and returned as `keyText` writes them. */
export async function readBlockedAmong(db: Queryable, tableName: string, keys: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ key: RowKey }>({
    name: 'read blocked among',
    text: `
      select distinct key
      from refold.dead_letters
      where table_name = $1 and key in (select jsonb_array_elements($2::jsonb))`,
    values: [tableName, `[${keys.join(',')}]`],
  });
  return rows.map(({ key }) => keyText(key));
}

/** The dead letters of a table in log order; only those of one row if a key is given. */
export async function readDeadLetters(db: Queryable, tableName: string, key?: string): Promise<DeadLetter[]> {
  return db.query<DeadLetter>({
    text: `
      select id, key, position, event_type as type, stream_id as "streamId", error, attempts, at
      from refold.dead_letters
      where table_name = $1 and ($2::jsonb is null or key = $2)
      order by position, id`,
    values: [tableName, key ?? null],
  });
}

/** The dead letters of all versions that are not retired, by version and in log order. */
export async function readAllDeadLetters(db: Queryable): Promise<(DeadLetter & { readonly of: string })[]> {
  return db.query<DeadLetter & { of: string }>({
    text: `
      select name || '@' || version as of, id, key, position, event_type as type, stream_id as "streamId", error, attempts, at
      from refold.dead_letters
      join refold.projections using (name, version, table_name)
      where state <> 'retired'
      order by name, version, position, id`,
  });
}

export interface DeadLetterCount {
  readonly name: string;
  readonly version: number;
  readonly letters: number;
}

/** The number of dead letters per version that is not retired, in the table in use. */
export async function countDeadLetters(db: Queryable): Promise<DeadLetterCount[]> {
  return db.query<DeadLetterCount>({
    name: 'count dead letters',
    text: `
      select name, version, count(*)::integer as letters
      from refold.dead_letters
      join refold.projections using (name, version, table_name)
      where state <> 'retired'
      group by name, version`,
  });
}

export async function deleteDeadLetters(db: Queryable, ids: readonly bigint[]): Promise<void> {
  await db.query({ text: 'delete from refold.dead_letters where id = any ($1)', values: [ids] });
}

/** Records a failed retry with its error. */
export async function recordAttempt(db: Queryable, id: bigint, error: NonNullable<DeadLetter['error']>): Promise<void> {
  await db.query({
    text: 'update refold.dead_letters set attempts = attempts + 1, error = $2, at = now() where id = $1',
    values: [id, JSON.stringify(error)],
  });
}

/**
 * Call this after changing rows outside of the version's processor: its owner then drops its cached rows, and subscribers read again. The
 * caller must hold the lock on the processor's row.
 */
export async function invalidateRows(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: `
      with fenced as (
        update refold.processors
        set
          epoch = epoch + 1,
          status = case status when 'stopped' then 'idle' else status end,
          owner = case status when 'stopped' then null else owner end,
          error = null,
          updated_at = now()
        where name = $1 and version = $2
      )
      update refold.projections
      set generation = generation + 1
      where name = $1 and version = $2`,
    values: [name, version],
  });
}
