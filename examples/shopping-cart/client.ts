import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import { createClient } from 'graphql-ws';
import type { AddProductItemInput, CartChangesSubscription } from './gql/graphql.ts';
import { graphql } from './gql/index.ts';

const openCarts = graphql(`
  query OpenCarts($first: Int!, $after: Position) @after(position: $after) {
    cartSummaries(where: { status: { eq: Opened } }, orderBy: [{ totalAmount: DESC }], first: $first) {
      totalCount
      nodes { cartId totalAmount productItems { name quantity } }
    }
  }
`);

const addProductItem = graphql(`
  mutation AddProductItem($input: AddProductItemInput!) {
    addProductItem(input: $input) { position cartSummary { cartId totalAmount productItemsCount } }
  }
`);

const cartChanges = graphql(`
  subscription CartChanges($cartId: ID!) {
    cartSummary(cartId: $cartId) { cartId totalAmount status }
  }
`);

/** A typed client of the shop, as a frontend would use it. Its types come from the schema (`npm run codegen`). */
export function createShopClient(url: string) {
  const sockets = createClient({ url: url.replace(/^http/, 'ws') });

  async function send<Result, Variables>(
    document: TypedDocumentNode<Result, Variables>,
    variables: Variables,
  ): Promise<Result> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: print(document), variables }),
    });
    const answer = (await response.json()) as { data?: Result; errors?: readonly { message: string }[] }; // GraphQL over HTTP
    if (!answer.data || answer.errors)
      throw new Error(answer.errors?.map(({ message }) => message).join('; ') ?? response.statusText);
    return answer.data;
  }

  return {
    /** The open carts, highest total first; `after` is the position of a write that the response must include. */
    openCarts: (first: number, after?: string) => send(openCarts, { first, after: after ?? null }),
    addProductItem: (input: AddProductItemInput) => send(addProductItem, { input }),
    /** The cart in its current state, then after every change. Ends with `return()`. */
    cartChanges: (cartId: string) =>
      sockets.iterate<CartChangesSubscription>({ query: print(cartChanges), variables: { cartId } }),
    close: () => sockets.dispose(),
  };
}
