/** A minimal application: what a user has directly after installing the package. */
export const applicationFiles: Readonly<Record<string, string>> = {
  'refold.config.ts': `
import { defineCommand, defineConfig, defineEvents, defineProjection, t } from 'refold';
import { z } from 'zod';

const item = z.object({ name: z.string(), quantity: z.int() });
const cart = defineEvents('cart', { ItemAdded: item });
const addItem = defineCommand({
  name: 'addItem',
  input: item.extend({ cartId: z.string() }),
  events: cart,
  stream: ({ cartId }) => cartId,
  decide: ({ cartId, ...payload }) => ({ type: 'ItemAdded', payload }),
});
const basket = defineProjection({
  name: 'basket',
  version: 1,
  events: cart,
  table: { cartId: t.text().primaryKey(), count: t.integer(), names: t.list(t.text()) },
  key: ({ streamId }) => streamId,
  evolve: {
    ItemAdded: (row, { payload }) => ({
      count: (row?.count ?? 0) + payload.quantity,
      names: [...(row?.names ?? []), payload.name],
    }),
  },
});

const url = process.env.DATABASE_URL;
export default defineConfig({
  ...(url === undefined ? {} : { database: { url } }),
  projections: [basket],
  commands: [addItem],
  gateway: { port: 0 },
});
`,
  'program.ts': `
import { createRefold } from 'refold';
import config from './refold.config.ts';

const refold = await createRefold(config);
const ask = (query: string, variables: object, accept = 'application/json') =>
  fetch(\`\${refold.url}/graphql\`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify({ query, variables }),
  });
const add = 'mutation ($id: ID!) { addItem(input: { cartId: $id, name: "Mug", quantity: 2 }) { basket { count names } } }';
console.log(JSON.stringify(await refold.graphql(add, { id: 'a' })));
const read = 'query ($id: ID!, $named: Boolean = true) { basket(cartId: $id) { count names @include(if: $named) } baskets { totalCount } }';
console.log(await (await ask(read, { id: 'a' })).text());
console.log(await (await ask('{ basket(cartId: 1, of: 2) { count } }', {})).text());
const live = await ask('subscription ($id: ID!) { basket(cartId: $id) { ... on Basket { count } } }', { id: 'a' }, 'text/event-stream');
let told = '';
for await (const text of live.body!.pipeThrough(new TextDecoderStream())) {
  told += text;
  if (/^data: \\{.*\\n/m.test(told)) break;
}
console.log(/^data: (\\{.*)$/m.exec(told)![1]);
await refold.stop();
`,
};

export const expectedLines: readonly RegExp[] = [
  /^\{"data":\{"addItem":\{"basket":\{"count":2,"names":\["Mug"\]\}\}\}\}$/m,
  /^\{"data":\{"basket":\{"count":2,"names":\["Mug"\]\},"baskets":\{"totalCount":1\}\}\}$/m,
  /^\{"errors":\[\{"message":"Unknown argument \\"of\\"/m,
  /^\{"data":\{"basket":\{"count":2\}\}\}$/m,
];
