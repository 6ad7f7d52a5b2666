import { openPool } from '../open-pool.ts';

export interface PlainInsert {
  append(caller: number): Promise<void>;
  /** Rows of the table. */
  count(): Promise<number>;
  close(): Promise<void>;
}

// More connections than this made it slower, not faster.
const mostConnections = 32;

/** The limit of an append that is not joined with others: one INSERT and its commit for each event, prepared, without a check of any kind. */
export async function createPlainInsert(url: string, callers: number): Promise<PlainInsert> {
  const pool = openPool(url, Math.min(callers, mostConnections));
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
  const text = 'insert into plain_events (stream_id, stream_position, type, payload) values ($1, $2, $3, $4)';
  const appended = new Map<number, number>();
  return {
    async append(caller) {
      const number = (appended.get(caller) ?? 0) + 1;
      appended.set(caller, number);
      const payload = JSON.stringify({ product: 'product-7', quantity: 1, price: '12.50' });
      await pool.query({
        name: 'plain insert',
        text,
        values: [`cart-${caller}-${Math.floor(number / 10)}`, number, 'ItemAdded', payload],
      });
    },
    async count() {
      const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from plain_events');
      return rows[0]?.n ?? 0;
    },
    close: () => pool.end(),
  };
}
