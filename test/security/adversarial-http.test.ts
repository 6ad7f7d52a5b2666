import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpAttempts } from './http-attempts.ts';
import { expectNoLeak } from './leaks.ts';
import { transports } from './send.ts';
import { startTarget, type Target } from './target.ts';

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});
afterAll(async () => {
  await target.stop();
});

test.each(httpAttempts)('$name', async ({ send, status, codes }) => {
  const reply = await send(target, `Bearer ${target.bearer}`);
  expectNoLeak(reply.all);
  expect([status].flat(), reply.all).toContain(reply.status);
  if (codes) expect([...new Set(reply.codes)], reply.all).toEqual(codes);
  expect(reply.all).not.toMatch(/^access-control-allow/im);
});

test('nothing was written, and correct requests are answered', async () => {
  const operation = { query: '{ letters { totalCount } letter(letterId: "csrf") { letterId } }' };
  const { body } = await transports['a plain POST'](target, operation, { authorization: `Bearer ${target.bearer}` });
  expect(JSON.parse(body)).toEqual({ data: { letters: { totalCount: 3 }, letter: null } });
});

test('no attempt caused an unexpected error', () => target.expectNoAlarm());
