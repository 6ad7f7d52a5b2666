import { expect, test } from 'vitest';
import { difference } from '../../soak/difference.ts';

test('the first difference of two responses is named with its path', () => {
  const right = { things: [{ id: 'a', tags: [1, null] }], count: 2 };
  expect(difference(structuredClone(right), right)).toBeUndefined();
  expect(difference({ ...right, count: 3 }, right)).toBe('.count is 3, expected 2');
  expect(difference({ ...right, things: [{ id: 'a', tags: [1, 2] }] }, right)).toBe(
    '.things[0].tags[1] is 2, expected null',
  );
  expect(difference({ things: right.things }, right)).toBe('.count is nothing, expected 2');
  expect(difference({ ...right, things: [] }, right)).toContain('.things is [], expected [{');
  expect(difference(null, right)).toContain('the response is null');
});
