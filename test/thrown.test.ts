import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { RefoldError } from '../src/index.ts';
import { errorOf, reasonOf, storedJson, storedText } from '../src/thrown.ts';
import { thrownThings } from './support/thrown-things.ts';

const isStorable = (text: string) => text.isWellFormed() && !text.includes('\u0000') && text.length <= 10_000;

test('any text becomes one that can be stored; a short one without such characters stays as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, isLong) => {
      const long = isLong ? text.repeat(Math.ceil(10_500 / Math.max(1, text.length))) : text;
      expect(isStorable(storedText(long))).toBe(true);
      if (isStorable(text)) expect(storedText(text)).toBe(text);
    }),
  );
  const cut = storedText(`begin${'x'.repeat(50_000)}end`);
  expect([cut.startsWith('beginx'), cut.endsWith('xend'), cut.includes('50008 characters in all')]).toEqual([
    true,
    true,
    true,
  ]);
});

test.each(
  Object.keys(thrownThings),
)('%s has a reason, is an error that is logged, and can be the cause of one', (name) => {
  const thing = () => thrownThings[name]?.();
  expect(isStorable(reasonOf(thing()))).toBe(true);
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  logger.warn({ err: errorOf(thing()) }, 'failed');
  expect(JSON.parse(lines[0] ?? '').err.message).toMatch(/./);
  expect((lines[0] ?? '').length).toBeLessThan(100_000);
  const error = new RefoldError('DATABASE_ERROR', reasonOf(thing()), {}, { cause: thing() });
  logger.warn({ err: error }, 'failed');
  expect(lines).toHaveLength(2);
});

test('an ordinary error stays itself, with its class and its code', () => {
  const error = Object.assign(new TypeError('wrong', { cause: new Error('inner') }), { code: 'E' });
  expect(errorOf(error)).toBe(error);
  expect(new RefoldError('DATABASE_ERROR', 'x', {}, { cause: error }).cause).toBe(error);
});

test('any value becomes JSON that the database takes', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, stringUnit: 'binary' } as object), (value) => {
      const json = storedJson({ value });
      expect(json).not.toMatch(/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/);
      JSON.parse(json);
    }),
  );
  const circle: { self?: unknown } = {};
  circle.self = circle;
  expect(JSON.parse(storedJson(circle))).toEqual({ unreadable: expect.stringContaining('circular') });
  expect(JSON.parse(storedJson({ text: '\u0000\u0000\\u0000 \ud83d', big: 1n }))).toEqual({
    text: '\ufffd\ufffd\\u0000 \ufffd',
    big: '1',
  });
});
