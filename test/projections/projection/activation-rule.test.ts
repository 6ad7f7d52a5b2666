import { expect, test } from 'vitest';
import { activationRule, waitsForMore } from '../../../src/projections/projection/activation-rule.ts';

const columns = ['accountId', 'owner'];
const rule = (option?: Parameters<typeof activationRule>[2]) => activationRule('balance@2', columns, option);

test('a declaration without options activates automatically, waits for nothing more and breaks no clients', () => {
  expect(rule()).toEqual({
    by: 'auto',
    maxLag: 100,
    maxNewDeadLetters: 0,
    maxLagSeconds: null,
    minReadySeconds: 0,
    verifyOneOf: null,
    comparedColumns: null,
    breaking: 'hold',
  });
  expect(waitsForMore(rule())).toBe(false);
  expect(rule('manual').by).toBe('manual');
  expect(rule({ verify: true, compareWith: 'previous' })).toMatchObject({ verifyOneOf: 1, comparedColumns: 'all' });
  expect(waitsForMore(rule({ verify: { oneOf: 10 } }))).toBe(true);
});

test.each([
  [{ by: 'later' as 'auto' }, "activation is 'auto' or 'manual', found 'later'."],
  [{ maxLag: -1 }, 'activation.maxLag is a number of positions, 0 or more, found -1.'],
  [{ maxLagSeconds: Number.NaN }, 'activation.maxLagSeconds is a number of seconds, 0 or more, found NaN.'],
  [{ minReadySeconds: -1 }, 'activation.minReadySeconds is a number of seconds, 0 or more, found -1.'],
  [{ verify: { oneOf: 0 } }, 'activation.verify.oneOf is a whole number from 1 on, found 0.'],
  [{ compareWith: { columns: ['ownr'] } }, "names 'ownr', which is not a column. Did you mean 'owner'?"],
  [{ compareWith: { columns: [] } }, "activation.compareWith is 'previous' or { columns: ['…'] }."],
  [{ breaking: 'yes' as 'allow' }, "activation.breaking is 'hold', 'allow' or { unusedDays: 30 }, found 'yes'."],
  [{ breaking: { unusedDays: 0 } }, 'activation.breaking.unusedDays is a whole number of days from 1 on, found 0.'],
  [{ verfy: true } as object, "unknown option 'verfy' of activation. Did you mean 'verify'?"],
  [{ by: 'manual' as const, verify: true }, "activation by 'manual' waits only for the operator"],
])('%j is refused, and the error says what was expected', (option, message) => {
  expect(() => rule(option)).toThrow(
    `balance@2: ${message.startsWith('names') ? 'activation.compareWith ' : ''}${message}`,
  );
});
