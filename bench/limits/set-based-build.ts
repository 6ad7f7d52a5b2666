import type pg from 'pg';

/** The limit of a build: one statement over the whole log into a table with the same columns, key and indexes as Refold's. */
export interface SetBasedBuild {
  readonly create: string;
  readonly fill: string;
  readonly index: readonly string[];
  /** Rows that the table and Refold's don't have in common; 0 where both are right. */
  readonly difference: string;
}

export const cartSummaryBySql: SetBasedBuild = {
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
  difference: difference('limit_cart_summary', 'read_models.cart_summary'),
};

export const cartLinesBySql: SetBasedBuild = {
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
  difference: difference('limit_cart_lines', 'read_models.cart_lines'),
};

/** Seconds that it takes. The table is there afterwards, to compare with. */
export async function buildBySql(client: pg.Client, { create, fill, index }: SetBasedBuild): Promise<number> {
  const [, table] = /create table (\w+)/.exec(create) ?? [];
  await client.query(`drop table if exists ${table}`);
  const start = performance.now();
  for (const statement of [create, fill, ...index]) await client.query(statement);
  return (performance.now() - start) / 1000;
}

function difference(one: string, other: string): string {
  return `
    select count(*)::int as n
    from (
      (table ${one} except all table ${other})
      union all
      (table ${other} except all table ${one})
    ) different`;
}
