import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { type ForeignAttempt, foreignAttempts, writingAttempts } from './foreign-attempts.ts';
import { hour, watchClock } from './hour.ts';
import { expectNoLeak } from './leaks.ts';
import { token } from './notes.ts';
import { type Operation, type Reply, type Transport, transports } from './send.ts';
import { foreignMark, startTarget, type Target } from './target.ts';

let target: Target;

beforeAll(async () => {
  target = await startTarget();
  // The other tenant has used the key `monday`.
  const variables = { key: 'monday', input: { letterId: 'south-9', tenantId: 'south', subject: foreignMark } };
  const [{ query } = { query: '' }] = foreignAttempts.filter(({ name }) => name.startsWith('an idempotency key'));
  expect((await ask('a plain POST', { query, variables }, target.foreignBearer)).codes).toEqual([]);
});
afterAll(async () => {
  await target.stop();
});

function ask(transport: Transport, operation: Operation, bearer: string, headers: OutgoingHttpHeaders = {}) {
  return transports[transport](target, operation, { authorization: `Bearer ${bearer}`, ...headers });
}

/** A WebSocket's response is the payload of a message. */
function dataIn({ body }: Reply): unknown {
  const [first = ''] = body.split('\n').filter((line) => line.includes('"data":'));
  const { data, payload } = JSON.parse(first);
  return data ?? payload.data;
}

async function expectNothingOf(
  { name: _, code, data, headers, ...operation }: ForeignAttempt,
  transport: Transport,
): Promise<void> {
  const reply = await ask(transport, operation, target.bearer, headers);
  expectNoLeak(reply.all);
  expect(reply.codes, reply.body).toEqual(code === null ? [] : [code]);
  if (data !== undefined) expect(dataIn(reply)).toEqual(data);
}

describe.each(['a plain POST', 'a POST in chunks', 'a WebSocket'] as const)('by %s', (transport) => {
  test.each(foreignAttempts)('$name', (attempt) => expectNothingOf(attempt, transport));
});

test.each(writingAttempts)('$name', (attempt) => expectNothingOf(attempt, 'a plain POST'));

describe.each(['server-sent events', 'a WebSocket'] as const)('a subscription by %s', (transport) => {
  test.each([
    ['to a column that one may not read', 'subscription { letter(letterId: "north-1") { secret } }', 'FORBIDDEN'],
    ['to a list with such a column', 'subscription { letters { snapshot { secret } } }', 'FORBIDDEN'],
    [
      'to a list by such a column',
      'subscription { letters(where: { secret: { startsWith: "Z" } }) { position } }',
      'FORBIDDEN',
    ],
    ['to a list in such an order', 'subscription { letters(orderBy: [{ secret: ASC }]) { position } }', 'FORBIDDEN'],
    ['to a giant list', 'subscription { letters(first: 1001) { position } }', 'BAD_USER_INPUT'],
    ['to a relation', 'subscription { letter(letterId: "north-1") { sender { letters } } }', 'BAD_USER_INPUT'],
    ['with NUL', 'subscription { letter(letterId: "\\u0000") { letterId } }', 'BAD_USER_INPUT'],
    [
      'to two things',
      'subscription { letter(letterId: "a") { letterId } letters { position } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    ['to the changes of rows of which one may see some', 'subscription { letterChanges { cursor } }', 'FORBIDDEN'],
    [
      'from a forged cursor on',
      'subscription { letterChanges(since: "1@1.1; select 1") { cursor } }',
      'BAD_USER_INPUT',
    ],
    ['from a cursor with NUL on', 'subscription { letterChanges(since: "\\u0000") { cursor } }', 'BAD_USER_INPUT'],
    [
      'from beyond all positions on',
      'subscription { letterChanges(since: "999999999999999") { cursor } }',
      'BAD_USER_INPUT',
    ],
    ['to nothing that there is', 'subscription { secrets { all } }', 'GRAPHQL_VALIDATION_FAILED'],
  ])('%s is refused', async (_, query, code) => {
    const reply = await ask(transport, { query }, target.bearer);
    expectNoLeak(reply.all);
    expect([...new Set(reply.codes)]).toEqual([code]);
  });

  test('ends when its token expires, and never sends foreign rows', async () => {
    const clock = watchClock();
    const authorization = `Bearer ${await token({ tenant: 'north', expiresIn: hour })}`;
    const query = 'subscription { letters { snapshot { tenantId subject } } }';
    let isTold = false;
    const reply = await transports[transport](target, { query }, { authorization }, (soFar) => {
      if (!isTold && soFar.includes('own 1')) clock.strike();
      isTold ||= soFar.includes('own 1');
    });
    expectNoLeak(reply.all);
    expect(reply.body).toContain('own 1');
    expect(reply.codes).toEqual(['UNAUTHENTICATED']);
  });
});

test("the other tenant's data is unchanged", async () => {
  const query = '{ letters { nodes { letterId } } }';
  await until(async () => {
    const { body } = await ask('a plain POST', { query }, target.foreignBearer);
    const found = JSON.parse(body).data.letters.nodes.map(({ letterId }: { letterId: string }) => letterId);
    expect(['south-1', 'south-2', 'south-3', 'south-9']).toEqual(expect.arrayContaining(found));
    return found.length === 4;
  });
});

test('no attempt caused an unexpected error', () => target.expectNoAlarm());
