/** `watch [cart]`: prints a cart at each change. The subscription stays open while a new version takes over. */
const url = `http://${process.env.HOST || '127.0.0.1'}:${process.env.PORT || 4000}/graphql`;
const query = `subscription ($cartId: ID!) {
  cartSummary(cartId: $cartId) { ... on CartSummary { cartId itemsCount } }
}`;

const response = await fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
  body: JSON.stringify({ query, variables: { cartId: process.argv[2] ?? 'c1' } }),
});
let text = '';
for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
  text += chunk;
  const messages = text.split('\n\n');
  text = messages.pop() ?? '';
  for (const message of messages) {
    const data = /^data: (.+)$/m.exec(message)?.[1];
    if (data) console.log(data);
  }
}
