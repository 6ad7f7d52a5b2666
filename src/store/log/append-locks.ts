import type { Queryable } from '../statements/statement.ts';
import type { PreparedAppend } from './append-statement.ts';

/** Something for which an append may wait, because another transaction holds it. */
export interface AppendLock {
  readonly kind: 'stream' | 'key' | 'inline' | 'log';
  /** As `refold.held_among` reads it. Equal names are the same lock. */
  readonly name: string;
  /** Whether appends exclude each other by it. Otherwise only others exclude them. */
  readonly alone: boolean;
  /** For messages. */
  readonly what: string;
}

/** The locks of the log that an append takes. */
export function logLocksOf({ parts, idempotencyKey }: PreparedAppend): AppendLock[] {
  const locks: AppendLock[] = parts.map(({ family, storedFamily, streamId }) => ({
    kind: 'stream',
    name: JSON.stringify({ stream: streamId, family: storedFamily }),
    alone: true,
    what: `'${streamId}' of ${family}`,
  }));
  if (idempotencyKey === undefined) return [...logTables, ...locks];
  const name = JSON.stringify({ key: idempotencyKey });
  const what = `the idempotency key '${idempotencyKey}'`;
  return [...logTables, tableLock('log', 'refold', 'append_keys'), { kind: 'key', name, alone: true, what }, ...locks];
}

/** `kind`: whose table it is. */
export function tableLock(kind: 'inline' | 'log', schema: string, table: string): AppendLock {
  return { kind, name: JSON.stringify({ table, schema }), alone: false, what: `the table ${schema}.${table}` };
}

/** An advisory lock: exclusive if `alone`, else shared. */
export function advisoryLock(
  kind: 'inline' | 'log',
  { key, alone, what }: { readonly key: bigint; readonly alone: boolean; readonly what: string },
): AppendLock {
  return { kind, name: JSON.stringify({ advisory: key.toString(), alone }), alone, what };
}

const logTables = ['streams', 'events'].map((table) => tableLock('log', 'refold', table));

/** The given locks that can't be taken within `waitMs` each. Takes one after the other, and holds none. */
export async function readHeld(
  target: Queryable,
  locks: readonly AppendLock[],
  waitMs: number,
): Promise<readonly AppendLock[]> {
  const [row] = await target.query<{ held: number[] }>({
    name: 'refold_held_among',
    text: 'select refold.held_among($1, $2) as held',
    values: [`[${locks.map(({ name }) => name).join(',')}]`, waitMs],
  });
  return (row?.held ?? []).flatMap((number) => locks[number - 1] ?? []);
}
