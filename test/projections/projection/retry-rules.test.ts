import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CommandRejected, RefoldError } from '../../../src/index.ts';
import {
  defaultRetries,
  pauseBeforeRetry,
  type RetryRule,
  retriesAfterLoss,
} from '../../../src/projections/projection/retry-rules.ts';

const always = [{ times: Number.POSITIVE_INFINITY, first: 100, factor: 2, maxPause: 5000, jitter: 0.5 }];

test('pauses double up to the maximum, less a random share', () => {
  const pauses = (random: number) =>
    [1, 2, 3, 6, 7, 8, 2000].map((attempts) => pauseBeforeRetry(always, new Error(), attempts, random));
  expect(pauses(0)).toEqual([100, 200, 400, 3200, 5000, 5000, 5000]);
  expect(pauses(1)).toEqual([50, 100, 200, 1600, 2500, 2500, 2500]);
});

test('a pause is never longer than the maximum, never shorter than the jitter allows, and there are as many as declared', () => {
  const rule = fc.record({
    times: fc.integer({ min: 0, max: 20 }),
    first: fc.integer({ min: 0, max: 10_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
    maxPause: fc.integer({ min: 0, max: 60_000 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(rule, fc.double({ min: 0, max: 1, noNaN: true }), (given, random) => {
      const pauses = Array.from({ length: 25 }, (_, index) =>
        pauseBeforeRetry([given], new Error(), index + 1, random),
      );
      expect(pauses.filter((pause) => pause !== undefined)).toHaveLength(given.times);
      for (const pause of pauses.slice(0, given.times)) {
        expect(pause).toBeLessThanOrEqual(given.maxPause);
        expect(pause).toBeGreaterThanOrEqual(Math.min(given.first, given.maxPause) * (1 - given.jitter) - 1e-6);
      }
    }),
  );
});

test('the first matching rule counts: it matches a class with its subclasses, a code, a predicate, or a list of these', () => {
  class Busy extends Error {}
  class VeryBusy extends Busy {}
  const rules: readonly RetryRule[] = [
    { on: [Busy, 'EPIPE'], times: 1, first: 1, jitter: 0 },
    { on: (error) => error === 'odd', times: 1, first: 2, jitter: 0 },
    { on: Error, times: 1, first: 3, jitter: 0 },
  ];
  const pauseOf = (error: unknown) => pauseBeforeRetry(rules, error, 1, 0);
  expect(pauseOf(new VeryBusy())).toBe(1);
  expect(pauseOf(Object.assign(new Error(), { code: 'EPIPE' }))).toBe(1);
  expect(pauseOf('odd')).toBe(2);
  expect(pauseOf(new TypeError())).toBe(3);
  expect(pauseOf('even')).toBeUndefined();
});

test('by default a refusal is not retried, other errors are retried five times, and an unreachable database always', () => {
  expect(pauseBeforeRetry(defaultRetries, new CommandRejected('no'), 1, 0)).toBeUndefined();
  expect(pauseBeforeRetry(defaultRetries, new Error(), 5, 0)).toBe(3200);
  expect(pauseBeforeRetry(defaultRetries, new Error(), 6, 0)).toBeUndefined();
  expect(pauseBeforeRetry([], new RefoldError('DATABASE_UNAVAILABLE', 'away'), 1000, 0)).toBe(30_000);
});

test('after the end of its process an event is handled again five times, or as the rules say', () => {
  const ended = new RefoldError('PROCESS_ENDED', 'killed');
  const allowed = (...rules: RetryRule[]) => retriesAfterLoss(rules, ended);
  expect(retriesAfterLoss(defaultRetries, ended)).toBe(5);
  expect(allowed()).toBe(5);
  // The process may have ended for any reason, so a rule for all errors does not make it fewer.
  expect(allowed({ times: 0 })).toBe(5);
  expect(allowed({ on: CommandRejected, times: 0 }, { times: 20 })).toBe(20);
  expect(allowed({ times: 20 }, { on: ['EPIPE', 'PROCESS_ENDED'], times: 1 })).toBe(1);
});

test('a changed or invalid step is not retried, whatever the rules say', () => {
  for (const code of ['STEP_CHANGED', 'INVALID_STEP'] as const)
    expect(pauseBeforeRetry([{ times: 9 }], new RefoldError(code, 'changed'), 1, 0)).toBeUndefined();
});
