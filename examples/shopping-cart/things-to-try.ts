/** The query that GraphiQL shows first. */
export const firstQuery = `# The open carts, the dearest first. Run it again: shoppers are busy.
query OpenCarts {
  cartSummaries(where: { status: { eq: Opened } }, orderBy: [{ totalAmount: DESC }], first: 5) {
    nodes { cartId customer { name } totalAmount productItems { name quantity unitPrice } }
  }
}
`;

/** The response includes the mutation's write, although the read model is updated in the background. */
export function ownWrite(cartId: string): string {
  return `mutation {
  openShoppingCart(input: { cartId: "${cartId}", customerId: "me" }) { position }
  addProductItem(input: { cartId: "${cartId}", productItem: { productId: "mug", name: "Mug", quantity: 2, unitPrice: "11.40" } }) {
    cartSummary { totalAmount productItems { name quantity } }
  }
}`;
}

/** First the current open carts, then every change. */
export const openCartsLive = `subscription {
  cartSummaries(where: { status: { eq: Opened } }, orderBy: [{ totalAmount: DESC }], first: 5) {
    snapshot { cartId totalAmount } entered { cartId totalAmount } changed { cartId totalAmount } left { cartId }
  }
}`;

/** Commands for a second shell. */
export function thingsToTry(url: string, cartId: string): string {
  const curl = (title: string, options: string, query: string) =>
    `${title}\n  curl -sN ${url}/graphql -H 'content-type: application/json'${options} -d '${onOneLine(query)}'`;
  return [
    'Random shoppers are using the shop. Try, in another shell:',
    curl('the open carts, the dearest first', '', firstQuery),
    curl('a mutation whose response includes its own write', '', ownWrite(cartId)),
    curl('every change of the open carts, until Ctrl-C', ` -H 'accept: text/event-stream'`, openCartsLive),
  ].join('\n\n');
}

function onOneLine(query: string): string {
  const text = query.replaceAll(/#.*$/gm, '').replaceAll(/\s+/g, ' ').trim();
  return JSON.stringify({ query: text });
}
