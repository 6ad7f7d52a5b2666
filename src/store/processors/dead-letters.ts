import type { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { keyText, type RowKey } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';

/** An event that a read table has not taken in. */
export interface DeadLetter {
  readonly id: bigint;
  /** The row's key as JSON; null where it could not be told. */
  readonly key: RowKey | null;
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  /** Null where the event waits behind an earlier one of its row. */
  readonly error: { readonly message: string; readonly stack?: string } | null;
  /** How often it was tried. */
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

/** An error as a letter keeps it. */
export function letterError(error: RefoldError): { message: string; stack?: string } {
  const stack = error.cause instanceof Error ? error.cause.stack : error.stack;
  return { message: error.message, ...(stack === undefined ? {} : { stack }) };
}

interface Table {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
}

/** Keeps them; one statement, however many. */
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

/** The keys of the rows that wait for an event that could not be folded, as `keyText` writes them. */
export async function readBlockedKeys(db: Queryable, tableName: string): Promise<string[]> {
  const rows = await db.query<{ key: RowKey }>({
    text: 'select distinct key from refold.dead_letters where table_name = $1 and key is not null',
    values: [tableName],
  });
  return rows.map(({ key }) => keyText(key));
}

/** As {@link readBlockedKeys}, of these keys only; they come and go as `keyText` writes them. */
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

/** The letters of a table in the order of the log, those of one row where a key is given. */
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

/** The letters of every version that is maintained, by version and in the order of the log. */
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

/** How many letters each version has that is maintained, in the table that serves. */
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

/** Another try has failed, now with this error. */
export async function recordAttempt(db: Queryable, id: bigint, error: NonNullable<DeadLetter['error']>): Promise<void> {
  await db.query({
    text: 'update refold.dead_letters set attempts = attempts + 1, error = $2, at = now() where id = $1',
    values: [id, JSON.stringify(error)],
  });
}

/**
 * Rows were changed beside the version's processor: its owner must forget the rows that it remembers, and subscribers read again.
 * The caller holds the processor's row.
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
