/** `node visitors.ts URL DAY COMMANDS`: random shoppers use the shop over HTTP. The same day always has the same shoppers. */
import { shoppers } from './shoppers.ts';

const [url = 'http://127.0.0.1:4000/graphql', day = '1', commands = '1000'] = process.argv.slice(2);

interface Answer {
  readonly data?: Readonly<Record<string, { readonly position: string }>>;
  readonly errors?: readonly { readonly message: string }[];
}

async function send(query: string, variables: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Answer; // GraphQL over HTTP
}

const actions = shoppers(Number(day));
let position = '0';
for (let sent = 0; sent < Number(commands); sent++) {
  const { command, input } = actions.next(true).value;
  const type = `${command.name[0]?.toUpperCase()}${command.name.slice(1)}Input`;
  const query = `mutation ($input: ${type}!) { done: ${command.name}(input: $input) { position } }`;
  const { data, errors } = await send(query, { input });
  if (!data?.done) throw new Error(errors?.[0]?.message);
  position = data.done.position;
}
// Is answered when the read model has all of it.
await send('{ cartSummaries(first: 1) { nodes { cartId } } }', {}, { 'refold-after': position });
console.log(`Day ${day}: ${commands} commands, up to position ${position.split('.')[0]}.`);
