import { expect, test } from 'vitest';
import { difference } from '../../soak/difference.ts';

test('the first difference of two answers is told with its place', () => {
  const right = { things: [{ id: 'a', tags: [1, null] }], count: 2 };
  expect(difference(structuredClone(right), right)).toBeUndefined();
  expect(difference({ ...right, count: 3 }, right)).toBe('.count is 3, and 2 is right');
  expect(difference({ ...right, things: [{ id: 'a', tags: [1, 2] }] }, right)).toBe(
    '.things[0].tags[1] is 2, and null is right',
  );
  expect(difference({ things: right.things }, right)).toBe('.count is nothing, and 2 is right');
  expect(difference({ ...right, things: [] }, right)).toContain('.things is [], and [{');
  expect(difference(null, right)).toContain('all of it is null');
});
