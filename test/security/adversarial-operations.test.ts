import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectNoLeak } from './leaks.ts';
import { attempts } from './operation-attempts.ts';
import { type Transport, transports } from './send.ts';
import { startTarget, type Target } from './target.ts';

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});
afterAll(async () => {
  await target.stop();
});

describe.each(Object.keys(transports) as Transport[])('by %s', (transport) => {
  const byGet = transport === 'a GET';
  const sent = attempts.filter(
    ({ query, notBy }) => !notBy?.includes(transport) && !(byGet && String(query).startsWith('mutation')),
  );
  test.each(sent)('$name', async ({ name: _, code, status = 200, headers, tells, notBy: __, ...operation }) => {
    const reply = await transports[transport](target, operation, {
      authorization: `Bearer ${target.bearer}`,
      ...headers,
    });
    expectNoLeak(reply.all);
    expect({ codes: [...new Set(reply.codes)], body: reply.body }).toEqual({
      codes: code === null ? [] : [code],
      body: expect.stringContaining(tells ?? ''),
    });
    if (transport === 'a plain POST') expect(reply.status).toBe(status);
    expect(reply.body).not.toContain('Did you mean');
  });
});

test('no attempt caused an unexpected error', () => target.expectNoAlarm());
