import { expect, test } from 'vitest';
import { startGateway } from '../gateway-under-test.ts';

const asked = { 'refold-position': '1' };

async function ask(endpoint: string, query: string, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

test('a response has its position, and the cursor for a change feed if requested', async () => {
  const { endpoint, pack, services } = await startGateway();
  await pack({ a: {}, b: {} });
  const query = '{ parcel(parcelId: "a") { pieces } }';
  expect(await ask(endpoint, query)).toEqual({ data: { parcel: { pieces: 2 } } });
  expect(services.opened).toEqual([{ snapshot: false }]);
  expect(await ask(endpoint, query, asked)).toEqual({
    data: { parcel: { pieces: 2 } },
    extensions: { position: '2', cursors: { parcel: '2@1.1' } },
  });
  expect(services.opened.at(-1)).toEqual({ snapshot: true, positions: true });
});

test('a payload has the position of its reads, or else of its write', async () => {
  const { endpoint } = await startGateway();
  expect(
    await ask(endpoint, 'mutation { packParcel(input: { parcelId: "a" }) { parcel { pieces } } }', asked),
  ).toMatchObject({ extensions: { position: '1', cursors: { parcel: '1@1.1' } } });
  expect(await ask(endpoint, 'mutation { packParcel(input: { parcelId: "b" }) { streamId } }', asked)).toMatchObject({
    extensions: { position: '2.00000002' },
  });
  expect(await ask(endpoint, '{ __typename }', asked)).toEqual({ data: { __typename: 'Query' } });
});

test("a mutation's response has the position of its last command in a header, on the direct path and through yoga", async () => {
  const { endpoint } = await startGateway();
  const send = async (query: string, headers: Record<string, string> = {}) => {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    const { data } = (await response.json()) as { data: Record<string, { position: string } | null> };
    return { data, header: response.headers.get('refold-position') };
  };
  // Yoga answers requests with a charset; all others are answered directly.
  for (const headers of [{}, { accept: 'application/json; charset=utf-8' }]) {
    const id = 'accept' in headers ? 'yoga' : 'direct';
    const mutation = `mutation {
      a: packParcel(input: { parcelId: "${id}-a" }) { position }
      b: packParcel(input: { parcelId: "${id}-b" }) { position }
      again: packParcel(input: { parcelId: "${id}-b" }, expectedVersion: 7) { position }
    }`;
    const { data, header } = await send(mutation, headers);
    expect(data.again).toBeNull();
    expect(header).toBe(data.b?.position);
    expect(header).toMatch(/^\d+\.[0-9a-f]{8}$/);
    const refused = `mutation { packParcel(input: { parcelId: "${id}-b" }, expectedVersion: 7) { position } }`;
    expect((await send(refused, headers)).header).toBeNull();
    expect((await send('{ parcels { totalCount } }', headers)).header).toBeNull();
  }
});

/** The events of a stream as text, until one contains the awaited text. */
async function streamed(endpoint: string, query: string, awaited: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  const response = await fetch(`${endpoint}?${new URLSearchParams({ query })}`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes(awaited)) text += (await reader.read()).value ?? '';
  leaving.abort();
  return text;
}

test('changes for a browser carry the id with which it reconnects', async () => {
  const { endpoint, pack } = await startGateway();
  await pack({ a: {} });
  const query = 'subscription { parcelChanges { reset changes { key { parcelId } } } }';
  expect(await streamed(endpoint, query, '}}\n\n')).toContain(
    'event: next\nid: 1@1.1\ndata: {"data":{"parcelChanges":{"reset":true,"changes":[{"key":{"parcelId":"a"}}]}}}\n\n',
  );
  // The last event that it has seen counts, not the first request.
  const first = 'subscription { parcelChanges(since: "0") { reset } }';
  expect(await streamed(endpoint, first, '}}\n\n', { 'last-event-id': '1@1.1' })).toContain('{"reset":false}');
  expect(await streamed(endpoint, 'subscription { parcels { position } }', 'data:')).not.toContain('id:');
});
