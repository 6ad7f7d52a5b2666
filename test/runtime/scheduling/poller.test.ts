import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPoller, type PollerOptions } from '../../../src/runtime/scheduling/poller.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
afterEach(() => void vi.useRealTimers());

/** A poller that records when it polls, in milliseconds since its creation. */
function recorded(outcome: () => Promise<'found' | 'idle'>, options: Partial<PollerOptions> = {}) {
  const start = Date.now();
  const polls: number[] = [];
  const errors: unknown[] = [];
  const poller = createPoller({
    ...{ min: 50, max: 120, step: 30, onError: (error) => void errors.push(error) },
    async poll() {
      polls.push(Date.now() - start);
      return outcome();
    },
    ...options,
  });
  return { poller, polls, errors };
}

/** Waits without moving the clock. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets the next pause end, and the poll after it begin. */
async function nextPoll(polls: readonly number[]): Promise<void> {
  const before = polls.length;
  vi.advanceTimersToNextTimer();
  await until(() => polls.length > before && vi.getTimerCount() > 0);
}

test('pauses grow while nothing is found, and are short again after a result', async () => {
  let found = false;
  const { poller, polls } = recorded(async () => (found ? 'found' : 'idle'));
  poller.wake();
  await until(() => vi.getTimerCount() > 0);
  for (let times = 0; times < 4; times++) await nextPoll(polls);
  expect(polls).toEqual([0, 50, 130, 240, 360]);
  found = true;
  await nextPoll(polls);
  await nextPoll(polls);
  expect(polls.slice(-2)).toEqual([480, 530]);
  await poller.stop();
});

test('a wake-up during a poll leads to one more poll at once, however many there were', async () => {
  const during = Promise.withResolvers<'idle'>();
  const { poller, polls } = recorded(() => (polls.length === 1 ? during.promise : Promise.resolve('idle')));
  poller.wake();
  await until(() => polls.length === 1);
  poller.wake();
  poller.wake();
  during.resolve('idle');
  await until(() => polls.length === 2 && vi.getTimerCount() > 0);
  expect(polls).toEqual([0, 0]);
  await poller.stop();
});

test('a failure is reported, and a wake-up does not shorten the pause after it', async () => {
  const { poller, polls, errors } = recorded(
    () => (polls.length === 1 ? Promise.reject(new Error('unreachable')) : Promise.resolve('idle')),
    { backoff: (failures) => failures * 1000 },
  );
  poller.wake();
  await until(() => errors.length === 1 && vi.getTimerCount() > 0);
  poller.wake();
  await nextPoll(polls);
  expect(polls.slice(0, 2)).toEqual([0, 1000]);
  await poller.stop();
});

test('it rests without a timer while nobody needs it, and ends with its last poll', async () => {
  let needed = false;
  const { poller, polls } = recorded(async () => 'idle', { isNeeded: () => needed });
  poller.wake();
  expect(vi.getTimerCount()).toBe(0);
  needed = true;
  poller.wake();
  await until(() => vi.getTimerCount() > 0);
  needed = false;
  poller.wake();
  await until(() => vi.getTimerCount() === 0);
  expect(polls).toEqual([0]);
  await poller.stop();
  poller.wake();
  expect(polls).toEqual([0]);
});
