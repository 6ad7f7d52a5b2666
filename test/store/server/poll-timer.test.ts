import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPollTimer } from '../../../src/store/server/poll-timer.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
afterEach(() => void vi.useRealTimers());

/** How long a wait takes, in milliseconds. */
async function timed(wait: Promise<void>): Promise<number> {
  const start = Date.now();
  vi.advanceTimersToNextTimer();
  await wait;
  return Date.now() - start;
}

test('pauses grow by a step up to a limit while nothing comes, and are short again after a wake-up', async () => {
  const waker = createPollTimer({ minMs: 50, maxMs: 120, stepMs: 30, jitter: 0 });
  const pauses = [];
  for (let times = 0; times < 5; times++) pauses.push(await timed(waker.wait()));
  expect(pauses).toEqual([50, 80, 110, 120, 120]);
  waker.foundWork();
  expect(await timed(waker.wait())).toBe(50);
});

test('a wake-up ends a wait, also if it came before the wait', async () => {
  const waker = createPollTimer({ minMs: 50, stepMs: 10, jitter: 0 });
  await timed(waker.wait());
  const waiting = waker.wait();
  waker.wake();
  await waiting;
  waker.wake();
  waker.wake();
  await waker.wait();
  expect(await timed(waker.wait())).toBe(50);
});

test('a signal ends a wait at once', async () => {
  const waker = createPollTimer();
  const stop = new AbortController();
  const waiting = waker.wait(stop.signal);
  stop.abort();
  await waiting;
  await waker.wait(stop.signal);
  expect(vi.getTimerCount()).toBe(0);
});

test('a part of each pause is random', async () => {
  const waker = createPollTimer({ minMs: 100, stepMs: 0, jitter: 0.5, random: () => 0.4 });
  expect(await timed(waker.wait())).toBe(80);
});
