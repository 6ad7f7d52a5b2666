import { ApolloClient, gql as apolloGql, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { Client, fetchExchange, subscriptionExchange } from '@urql/core';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { parcel } from '../../schema/parcels.ts';
import { type GatewayUnderTest, startGateway } from '../gateway-under-test.ts';

const read = 'query ($id: ID!) { parcel(parcelId: $id) { parcelId weight } }';
const pack = 'mutation ($id: ID!) { packParcel(input: { parcelId: $id, weight: "2.5" }) { position streamVersion } }';
const wrong = 'mutation { packParcel(input: { parcelId: "a", weight: "much" }) { position } }';
const watch = 'subscription { parcel(parcelId: "a") { weight } }';

/** The API through a client library. */
interface UnderTest {
  query(source: string, variables?: Record<string, unknown>): Promise<unknown>;
  mutate(source: string, variables?: Record<string, unknown>): Promise<unknown>;
  /** The code of the first error. */
  code(source: string): Promise<unknown>;
  /** Calls with each update. */
  subscribe(source: string, next: (data: unknown) => void): void;
}

const clients: Record<string, (tested: GatewayUnderTest) => UnderTest> = {
  'urql over server-sent events': ({ endpoint }) => urql(endpoint, sseSource(endpoint)),
  'urql over WebSocket': ({ endpoint }) => urql(endpoint, socketSource(endpoint)),
  'Apollo Client': ({ endpoint }) => apollo(endpoint),
  fetch: ({ endpoint }) => plain(endpoint),
};

describe.each(Object.entries(clients))('%s', (_, create) => {
  test('queries, mutates, and sees errors by their codes', async () => {
    const tested = await startGateway();
    await tested.pack({ a: { weight: '1.5' } });
    const client = create(tested);
    expect(await client.query(read, { id: 'a' })).toMatchObject({ parcel: { parcelId: 'a', weight: '1.500' } });
    expect(await client.mutate(pack, { id: 'b' })).toMatchObject({
      packParcel: { position: '2.00000002', streamVersion: 1 },
    });
    expect(await client.code(wrong)).toBe('BAD_USER_INPUT');
  });

  test('watches a row', async () => {
    const tested = await startGateway();
    const seen: unknown[] = [];
    create(tested).subscribe(watch, (data) => seen.push(data));
    await expect.poll(() => seen).toEqual([{ parcel: null }]);
    await tested.pack({ a: { weight: '1.5' } });
    await expect.poll(() => seen).toMatchObject([{ parcel: null }, { parcel: { weight: '1.500' } }]);
    await tested.services.append(parcel, 'a', { type: 'ParcelWeighed', payload: { weight: '2' } });
    await expect
      .poll(() => seen)
      .toMatchObject([{ parcel: null }, { parcel: { weight: '1.500' } }, { parcel: { weight: '2.000' } }]);
  });
});

type Source = Parameters<typeof subscriptionExchange>[0]['forwardSubscription'];

function socketClient(endpoint: string) {
  const client = createSocketClient({
    url: endpoint.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  onTestFinished(() => void client.dispose());
  return client;
}

function socketSource(endpoint: string): Source {
  const client = socketClient(endpoint);
  return (operation) => ({
    subscribe: (sink) => ({
      unsubscribe: client.subscribe({ ...operation, query: operation.query ?? '' } as never, sink as never),
    }), // the same shapes, typed apart
  });
}

function sseSource(endpoint: string): Source {
  const client = createSseClient({ url: endpoint, retryAttempts: 0 });
  onTestFinished(() => client.dispose());
  return (operation) => ({
    subscribe: (sink) => ({
      unsubscribe: client.subscribe({ ...operation, query: operation.query ?? '' } as never, sink as never),
    }), // as above
  });
}

function urql(url: string, forwardSubscription: Source): UnderTest {
  const client = new Client({
    url,
    preferGetMethod: false,
    exchanges: [fetchExchange, subscriptionExchange({ forwardSubscription })],
  });
  const asked = async (result: Promise<{ data?: unknown; error?: unknown }>) => {
    const { data, error } = await result;
    if (error) throw error;
    return data;
  };
  return {
    query: (source, variables = {}) => asked(client.query(source, variables).toPromise()),
    mutate: (source, variables = {}) => asked(client.mutation(source, variables).toPromise()),
    code: async (source) => (await client.mutation(source, {}).toPromise()).error?.graphQLErrors[0]?.extensions.code,
    subscribe(source, next) {
      const { unsubscribe } = client.subscription(source, {}).subscribe(({ data }) => next(data));
      onTestFinished(unsubscribe);
    },
  };
}

function apollo(uri: string): UnderTest {
  const over = new ApolloClient({ cache: new InMemoryCache(), link: new HttpLink({ uri }) });
  const live = new ApolloClient({ cache: new InMemoryCache(), link: new GraphQLWsLink(socketClient(uri)) });
  onTestFinished(() => {
    over.stop();
    live.stop();
  });
  return {
    query: async (source, variables = {}) => (await over.query({ query: apolloGql(source), variables })).data,
    mutate: async (source, variables = {}) => (await over.mutate({ mutation: apolloGql(source), variables })).data,
    async code(source) {
      const { error } = await over.mutate({ mutation: apolloGql(source), errorPolicy: 'all' });
      return (error as { errors?: { extensions?: { code?: string } }[] } | undefined)?.errors?.[0]?.extensions?.code; // CombinedGraphQLErrors
    },
    subscribe(source, next) {
      const subscription = live.subscribe({ query: apolloGql(source) }).subscribe(({ data }) => next(data));
      onTestFinished(() => subscription.unsubscribe());
    },
  };
}

function plain(endpoint: string): UnderTest {
  const post = async (query: string, variables = {}) => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify({ query, variables }) })).json();
  };
  const data = async (query: string, variables = {}) => (await post(query, variables)).data;
  return {
    query: data,
    mutate: data,
    code: async (source) => (await post(source)).errors[0].extensions.code,
    subscribe(source, next) {
      const ending = new AbortController();
      onTestFinished(() => ending.abort());
      void readEvents(`${endpoint}?query=${encodeURIComponent(source)}`, ending.signal, next);
    },
  };
}

/** Reads server-sent events without a library, by their specification. */
async function readEvents(url: string, signal: AbortSignal, next: (data: unknown) => void): Promise<void> {
  const { body } = await fetch(url, { headers: { accept: 'text/event-stream' }, signal });
  let text = '';
  try {
    for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = /^event: next\ndata: (.*)$/m.exec(text.slice(0, end))?.[1];
        text = text.slice(end + 2);
        if (data !== undefined) next((JSON.parse(data) as { data: unknown }).data);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
