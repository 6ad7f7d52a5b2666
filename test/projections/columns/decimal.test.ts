import createBig, { type Big } from 'big.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decimal } from '../../../src/index.ts';
import { deepFreeze } from '../../../src/projections/columns/deep-freeze.ts';

const LibraryDecimal = createBig();

const digits = fc.stringMatching(/^\d{0,25}$/);
const text = fc
  .tuple(fc.constantFrom('', '', '-', '+', '--'), digits, fc.constantFrom('', '.', '.', '..'), digits)
  .map((parts) => parts.join(''));
const odd = fc.oneof(
  { weight: 6, arbitrary: text },
  fc.constantFrom('', '-', '.', '-.', '0', '-0', '-0.00', '00.10', '.5', '5.', '1e3', '1E-7', ' 1', '1 ', '0x1', 'NaN'),
  fc.double().map(String),
);
const exact = fc.tuple(fc.bigInt(-(10n ** 20n), 10n ** 20n), fc.nat(12)).map(([whole, scale]) => {
  const text = String(whole < 0n ? -whole : whole).padStart(scale + 1, '0');
  const end = text.length - scale;
  return `${whole < 0n ? '-' : ''}${text.slice(0, end)}${scale === 0 ? '' : `.${text.slice(end)}`}`;
});

describe('a decimal', () => {
  test('is parsed from any text as the library parses it, or refused as there', () => {
    fc.assert(
      fc.property(odd, (value) => {
        expect(partsOf(() => decimal(value))).toEqual(partsOf(() => new LibraryDecimal(value)));
      }),
      { numRuns: 1000 },
    );
  });

  test('computes as the library does, with operands of any kind', () => {
    const operand = fc.oneof(
      exact,
      fc.integer(),
      fc.constant(-0),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.bigInt(),
    );
    fc.assert(
      fc.property(exact, operand, (one, other) => {
        const [ours, theirs] = [decimal(one), new LibraryDecimal(one)];
        for (const count of [
          (value: Big) => value.plus(other),
          (value: Big) => value.minus(other),
          (value: Big) => value.times(other),
          (value: Big) => value.div(other),
          (value: Big) => value.round(2),
        ])
          expect(partsOf(() => count(ours))).toEqual(partsOf(() => count(theirs)));
        expect(ours.toString()).toBe(theirs.toString());
        expect(ours.cmp(other)).toBe(theirs.cmp(other));
        expect(ours.plus(theirs).toFixed()).toBe(theirs.plus(ours).toFixed());
        expect(ours.plus(other).plus(1).minus(1).eq(theirs.plus(other))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

test('mod works on a decimal of a frozen row, although the library changes the sign of its operand for a moment', () => {
  const row = deepFreeze({ total: decimal('-12.50'), parts: [decimal('7')] });
  expect(row.total.mod(2).toFixed(2)).toBe('-0.50');
  expect(row.total.toFixed(2)).toBe('-12.50');
  expect(row.parts[0]?.mod('-2.5').toFixed(1)).toBe('2.0');
});

/** What the library keeps of a value, or that it keeps none. */
function partsOf(make: () => Big): unknown {
  try {
    const { s, e, c } = make();
    return { s, e, c };
  } catch {
    return 'refused';
  }
}
