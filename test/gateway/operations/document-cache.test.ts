import { expect, test } from 'vitest';
import { createDocumentCache } from '../../../src/gateway/operations/document-cache.ts';

test('the cache keeps the latest documents, limited in number and in total length', () => {
  const cache = createDocumentCache<{ readonly number: number }>();
  for (let number = 0; number < 3000; number++) cache.set(`{ field${number} }`, { number });
  expect(cache.size).toBe(1024);
  expect(cache.get('{ field2999 }')).toEqual({ number: 2999 });
  expect(cache.get('{ field0 }')).toBeUndefined();
  const long = 'x'.repeat(250_000);
  for (let number = 0; number < 3000; number++) cache.set(`${number} ${long}`, { number });
  expect(cache.size).toBeLessThanOrEqual(16);
  expect(cache.calculatedSize).toBeLessThanOrEqual(500_000);
  expect(cache.get(`2999 ${long}`)).toEqual({ number: 2999 });
});
