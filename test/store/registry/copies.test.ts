import { expect, test } from 'vitest';
import { type Copy, currentCopies } from '../../../src/store/registry/copies.ts';

const copy = (
  generation: number,
  { arrivingFrom = null, movedTo = null, state = 'active' }: Partial<Copy> = {},
): Copy => ({
  name: 'cart',
  version: 1,
  generation,
  arrivingFrom,
  movedTo,
  state,
});

test('the complete copy of the highest generation counts', () => {
  const [first, moved, arriving] = [copy(1), copy(1000), copy(2000, { arrivingFrom: 'apart' })];
  expect(currentCopies([first, moved, arriving])).toEqual([moved]);
  expect(currentCopies([arriving])).toEqual([]);
});

test('a copy that was retired for a move counts only while no other is known, also if a database has lost that its copy came back', () => {
  const retired = copy(1000, { movedTo: 'default', state: 'retired' });
  // The second one was left by the move, and lost its return.
  for (const kept of [copy(1), copy(1, { movedTo: 'apart' })]) {
    expect(currentCopies([kept, retired])).toEqual([kept]);
    expect(currentCopies([retired, kept])).toEqual([kept]);
  }
  expect(currentCopies([retired])).toEqual([retired]);
});
