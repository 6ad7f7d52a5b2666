import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decimal } from '../../../src/index.ts';
import { keyText } from '../../../src/projections/projection/projection.ts';

test('the text of a key is its JSON for any values, because partitions and dead letters of older processes depend on it', () => {
  const odd = fc.constantFrom('"', '\\', '\n', '\u001f', '\u007f', '\u2028', '\ud800', 'é', '😀', '');
  const text = fc.oneof(
    fc.string(),
    fc.array(fc.oneof(odd, fc.string()), { maxLength: 5 }).map((parts) => parts.join('')),
  );
  const value = fc.oneof(
    { weight: 4, arbitrary: text },
    text.map((part) => part.repeat(50)),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.bigInt(),
    fc.constantFrom(null, undefined, -0),
    fc.integer().map((amount) => decimal(amount)),
    fc.dictionary(fc.string(), fc.bigInt(), { maxKeys: 2 }),
  );
  fc.assert(
    fc.property(fc.array(value, { maxLength: 4 }), (key) => {
      const json = JSON.stringify(key, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
      expect(keyText(key)).toBe(json);
    }),
    { numRuns: 1000 },
  );
});
