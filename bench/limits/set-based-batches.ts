import type { SqlBuild } from './set-based-build.ts';

// As many as one batch of Refold during a build.
const batchSize = 100_000;

export const cartSummaryBatches = inBatches({
  table: 'limit_cart_summary',
  create: `
    create table limit_cart_summary (
      cart_id text collate "C" primary key,
      customer text collate "C",
      items integer not null,
      total numeric(14, 2) not null
    ) with (fillfactor = 90)`,
  batch: `
    insert into limit_cart_summary as old
    select
      stream_id,
      max(payload ->> 'customer'),
      coalesce(sum((payload ->> 'quantity')::int), 0),
      coalesce(sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int), 0)
    from refold.events
    where position > $1 and position <= $2 and family = 'cart' and type in ('Opened', 'ItemAdded')
    group by stream_id
    on conflict (cart_id) do update set
      customer = coalesce(old.customer, excluded.customer),
      items = old.items + excluded.items,
      total = old.total + excluded.total`,
  index: [
    'create index on limit_cart_summary (customer, cart_id)',
    'create index on limit_cart_summary (total, cart_id)',
    'analyze limit_cart_summary',
  ],
});

export const productSalesBatches = inBatches({
  table: 'limit_product_sales',
  create: `
    create table limit_product_sales (
      product text collate "C" primary key,
      sold integer not null,
      turnover numeric(16, 2) not null
    ) with (fillfactor = 90)`,
  batch: `
    insert into limit_product_sales as old
    select
      payload ->> 'product',
      sum((payload ->> 'quantity')::int),
      sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int)
    from refold.events
    where position > $1 and position <= $2 and family = 'cart' and type = 'ItemAdded'
    group by 1
    on conflict (product) do update set
      sold = old.sold + excluded.sold,
      turnover = old.turnover + excluded.turnover`,
  index: ['analyze limit_product_sales'],
});

interface Batches {
  readonly table: string;
  readonly create: string;
  /** One statement for the positions in `($1, $2]`. */
  readonly batch: string;
  readonly index: readonly string[];
}

/** The limit of `evolveSql`: the same SQL by hand, batch by batch, each with a checkpoint in one transaction. */
function inBatches({ table, create, batch, index }: Batches): SqlBuild {
  return {
    table,
    async build(client) {
      await client.query(`drop table if exists ${table}, limit_checkpoint`);
      await client.query('create table limit_checkpoint (position bigint not null)');
      await client.query('insert into limit_checkpoint values (0)');
      const start = performance.now();
      await client.query(create);
      const { rows } = await client.query<{ head: number }>('select max(position)::int as head from refold.events');
      const head = rows[0]?.head ?? 0;
      for (let after = 0; after < head; after += batchSize) {
        const upTo = Math.min(after + batchSize, head);
        await client.query('begin');
        await client.query('update limit_checkpoint set position = $1', [upTo]);
        await client.query(batch, [after, upTo]);
        await client.query('commit');
      }
      for (const statement of index) await client.query(statement);
      return (performance.now() - start) / 1000;
    },
  };
}
