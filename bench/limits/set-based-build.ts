import type pg from 'pg';

/** A build by SQL, the limit of Refold's build: a table with the same columns, key and indexes. */
export interface SqlBuild {
  readonly table: string;
  /** Seconds that it takes. The table stays, for comparison. */
  build(client: pg.Client): Promise<number>;
}

export const cartSummaryBySql = inOneStatement({
  table: 'limit_cart_summary',
  create: `
    create table limit_cart_summary (
      cart_id text collate "C" primary key,
      customer text collate "C" not null,
      items integer not null,
      total numeric(14, 2) not null
    )`,
  fill: `
    insert into limit_cart_summary
    select
      stream_id,
      max(payload ->> 'customer'),
      coalesce(sum((payload ->> 'quantity')::int), 0),
      coalesce(sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int), 0)
    from refold.events
    where family = 'cart'
    group by stream_id`,
  index: [
    'create index on limit_cart_summary (customer, cart_id)',
    'create index on limit_cart_summary (total, cart_id)',
    'analyze limit_cart_summary',
  ],
});

export const cartLinesBySql = inOneStatement({
  table: 'limit_cart_lines',
  create: `
    create table limit_cart_lines (
      cart_id text collate "C" not null,
      line integer not null,
      product text collate "C" not null,
      quantity integer not null,
      price numeric(10, 2) not null,
      primary key (cart_id, line)
    )`,
  fill: `
    insert into limit_cart_lines
    select
      stream_id,
      stream_position,
      coalesce(payload ->> 'product', ''),
      coalesce((payload ->> 'quantity')::int, 0),
      coalesce((payload ->> 'price')::numeric, 0)
    from refold.events
    where family = 'cart'
    order by position`,
  index: ['analyze limit_cart_lines'],
});

export const hotGroupsBySql = inOneStatement({
  table: 'limit_hot_groups',
  create: `
    create table limit_hot_groups (
      "group" text collate "C" primary key,
      carts integer not null,
      items integer not null,
      turnover numeric(16, 2) not null
    )`,
  fill: `
    insert into limit_hot_groups
    select
      'group-' || right(stream_id, 1),
      count(*) filter (where type = 'Opened'),
      coalesce(sum((payload ->> 'quantity')::int), 0),
      coalesce(sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int), 0)
    from refold.events
    where family = 'cart'
    group by 1`,
  index: ['analyze limit_hot_groups'],
});

export const salesByBySql = inOneStatement({
  table: 'limit_sales_by',
  create: `
    create table limit_sales_by (
      dimension text collate "C" not null,
      value text collate "C" not null,
      sold integer not null,
      turnover numeric(16, 2) not null,
      primary key (dimension, value)
    )`,
  fill: `
    insert into limit_sales_by
    select
      dimension,
      value,
      sum((payload ->> 'quantity')::int),
      sum((payload ->> 'price')::numeric * (payload ->> 'quantity')::int)
    from refold.events
    cross join lateral (
      values ('product', payload ->> 'product'), ('cart', stream_id), ('quantity', payload ->> 'quantity')
    ) touched (dimension, value)
    where family = 'cart' and type = 'ItemAdded'
    group by dimension, value`,
  index: ['analyze limit_sales_by'],
});

export const cartDocumentBySql = inOneStatement({
  table: 'limit_cart_document',
  create: `
    create table limit_cart_document (
      cart_id text collate "C" primary key,
      customer text collate "C" not null,
      lines jsonb not null
    )`,
  fill: `
    insert into limit_cart_document
    select
      stream_id,
      max(payload ->> 'customer'),
      coalesce(jsonb_agg(payload order by position) filter (where type = 'ItemAdded'), '[]')
    from refold.events
    where family = 'cart'
    group by stream_id`,
  index: ['analyze limit_cart_document'],
});

interface OneStatement {
  readonly table: string;
  readonly create: string;
  /** Over the whole log. */
  readonly fill: string;
  readonly index: readonly string[];
}

function inOneStatement({ table, create, fill, index }: OneStatement): SqlBuild {
  return {
    table,
    async build(client) {
      await client.query(`drop table if exists ${table}`);
      const start = performance.now();
      for (const statement of [create, fill, ...index]) await client.query(statement);
      return (performance.now() - start) / 1000;
    },
  };
}
