import type pg from 'pg';
import { migrate } from '../src/store/server/migrate.ts';
import { openClient } from './open-client.ts';
import type { BenchServer } from './server.ts';

export interface CartLog {
  readonly url: string;
  readonly events: number;
  readonly streams: number;
}

/**
 * A database with a log of carts: each stream's first event opens it, the others add items. Streams are mixed evenly. A customer has forty carts.
 * One statement writes the log, without Refold, because the writing is not measured here.
 */
export async function createCartLog(
  server: BenchServer,
  name: string,
  events: number,
  streams: number,
): Promise<CartLog> {
  const url = await server.createDatabase(name);
  await migrate(url);
  const client = await openClient(url);
  await client.query(
    `insert into refold.events (stream_position, family, stream_id, type, payload)
    select
      i / $2 + 1,
      'cart',
      'cart-' || i % $2,
      case when i < $2 then 'Opened' else 'ItemAdded' end,
      case when i < $2
        then jsonb_build_object('customer', 'customer-' || i % ($2 / 40))
        else jsonb_build_object(
          'product', 'product-' || i * 7919 % 100,
          'quantity', i % 5 + 1,
          'price', to_char((i * 7919 % 99991)::numeric / 100, 'FM990.00'))
      end
    from generate_series(0, $1::bigint - 1) i
    order by i`,
    [events, streams],
  );
  await client.query(
    `insert into refold.streams (family, stream_id, version)
    select family, stream_id, max(stream_position)
    from refold.events
    group by family, stream_id`,
  );
  await client.query('vacuum (analyze) refold.events');
  await client.query('vacuum (analyze) refold.streams');
  await client.end();
  await server.settle();
  return { url, events, streams };
}

/** Removes every read table and version. The next start builds them again from the first event. */
export async function forgetReadModels(client: pg.Client): Promise<void> {
  await client.query('drop schema if exists read_models cascade');
  await client.query('delete from refold.rebuilds');
  await client.query('delete from refold.old_tables');
  await client.query('delete from refold.changes');
  await client.query('delete from refold.projections');
}
