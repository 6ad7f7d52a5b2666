import { item } from '../carts.ts';
import { check } from '../check.ts';
import { openPool } from '../open-pool.ts';

export interface PlainInsert {
  append(caller: number): Promise<void>;
  /** Throws if a row is missing. */
  check(): Promise<void>;
  close(): Promise<void>;
}

// More connections made it slower, not faster.
const maxConnections = 32;

/**
 * The limit of an append that is not joined with others: one prepared INSERT and its commit, without any check. It writes a row for one
 * event in each of this many streams.
 */
export async function createPlainInsert(url: string, callers: number, streams = 1): Promise<PlainInsert> {
  const pool = openPool(url, Math.min(callers, maxConnections));
  await pool.query(`
    create table plain_events (
      position bigint generated always as identity primary key,
      stream_id text not null,
      stream_position bigint not null,
      recorded_at timestamptz not null default clock_timestamp(),
      type text not null,
      payload jsonb not null,
      metadata jsonb not null default '{}',
      unique (stream_id, stream_position)
    )`);
  const rows = Array.from({ length: streams }, (_, row) => [1, 2, 3, 4].map((column) => `$${row * 4 + column}`));
  const text = `
    insert into plain_events (stream_id, stream_position, type, payload)
    values ${rows.map((row) => `(${row.join(', ')})`).join(', ')}`;
  const appended = new Map<number, number>();
  return {
    async append(caller) {
      const number = (appended.get(caller) ?? 0) + 1;
      appended.set(caller, number);
      const payload = JSON.stringify(item);
      const cart = `cart-${caller}-${Math.floor(number / 10)}`;
      const values = rows.flatMap((_, row) => [`${cart}-${row}`, number, 'ItemAdded', payload]);
      await pool.query({ name: 'plain insert', text, values });
    },
    async check() {
      const calls = [...appended.values()].reduce((sum, number) => sum + number, 0);
      const { rows: found } = await pool.query<{ n: number }>('select count(*)::int as n from plain_events');
      check(found[0]?.n === calls * streams, () => `${found[0]?.n} rows of ${calls} plain INSERTs`);
    },
    close: () => pool.end(),
  };
}
