/** The limit of an API on PostgreSQL: node:http, one prepared statement per request, and JSON from PostgreSQL. */
import { createServer } from 'node:http';
import { openPool } from '../open-pool.ts';
import { answerParent } from './answer-parent.ts';

const statements = {
  '/by-id': `
    select json_build_object('cartId', cart_id, 'customer', customer, 'items', items, 'total', total::text)::text as body
    from read_models.cart_summary
    where cart_id = $1`,
  '/list': `
    select json_agg(json_build_object('cartId', cart_id, 'customer', customer, 'items', items, 'total', total::text))::text as body
    from (
      select *
      from read_models.cart_summary
      where customer = $1
      order by total desc, cart_id
      limit 20
    ) page`,
  '/related': `
    select json_agg(json_build_object('cartId', cart_id, 'total', total::text, 'customerTotal', customer_total))::text as body
    from (
      select
        cart_id,
        total,
        (
          select json_build_object('customer', owner.customer, 'carts', carts)
          from read_models.customer_total owner
          where owner.customer = cart.customer
        ) as customer_total
      from read_models.cart_of_customer cart
      where customer = $1
      order by total desc, cart_id
      limit 20
    ) page`,
  '/aggregate': `
    select json_build_object('count', count(*))::text as body
    from read_models.cart_summary
    where customer = $1`,
} as const;

const [, , url = ''] = process.argv;
const pool = openPool(url, 10);
const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => {
    body += text;
  });
  request.on('end', () => {
    const name = (request.url ?? '') as keyof typeof statements; // the load generator requests nothing else
    const { value } = JSON.parse(body) as { value: string }; // the load generator sends nothing else
    pool.query<{ body: string }>({ name, text: statements[name], values: [value] }).then(
      ({ rows }) => {
        const json = Buffer.from(rows[0]?.body ?? 'null');
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': json.length }).end(json);
      },
      () => response.writeHead(500, { 'content-length': 0 }).end(),
    );
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  answerParent(`http://127.0.0.1:${port}`, async () => {
    server.closeAllConnections();
    await pool.end();
  });
});
