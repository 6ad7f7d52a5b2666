import { expect, test } from 'vitest';
import { shadowVerdict } from '../../../src/runtime/activation/shadow-gate.ts';

const standing = {
  name: 'balance',
  version: 2,
  queries: 100,
  maxDifferent: 0.02,
  withinSeconds: 3600,
  stopped: false,
  same: 0,
  different: 0,
  failed: 0,
  example: null,
};

test('unanswered comparisons count as different, up to the declared share', () => {
  expect(shadowVerdict({ ...standing, same: 97, different: 1, failed: 1 }).outcome).toBe('few');
  expect(shadowVerdict({ ...standing, same: 98, different: 1, failed: 1 })).toEqual({
    outcome: 'met',
    said: 'of 100 live queries compared 2 were answered differently',
  });
  const example = { operation: 'Cart', path: '' };
  const { outcome, said } = shadowVerdict({ ...standing, same: 97, different: 1, failed: 2, example });
  expect(outcome).toBe('different');
  expect(said).toMatch(
    /^Of 100 live queries compared in the last hour, 3 were answered differently \(last: Cart, which it rejects\): 3 %, and at most 2 % may be\./,
  );
});

test('a comparison that an operator has stopped says how to continue it', () => {
  expect(shadowVerdict({ ...standing, withinSeconds: 90, stopped: true }).said).toMatch(
    /in the last 90 seconds: 0 so far, .*The comparison was stopped: 'refold shadow balance@2 --one-of 10' starts it again,/,
  );
});
