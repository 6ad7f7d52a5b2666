import { expect, test } from 'vitest';
import { knownWhenDone } from '../../../src/runtime/versions/known-steps.ts';
import type { Lifecycle } from '../../../src/runtime/versions/lifecycle.ts';

const step = { actor: 'test', reason: 'a test' };

/** Only the step that these tests take. */
const lifecycleWith = (rollback: Lifecycle['rollback']) => ({ rollback }) as Lifecycle; // the others are not called

test('a step is done although the registries can not be read after it, and that is reported', async () => {
  const reported: unknown[] = [];
  const lost = new Error('the connection was lost');
  const lifecycle = knownWhenDone(
    lifecycleWith(async () => ({ from: 2, to: 1 })),
    { refresh: () => Promise.reject(lost), onError: (error) => reported.push(error) },
  );
  expect(await lifecycle.rollback('cart_summary', step)).toEqual({ from: 2, to: 1 });
  expect(reported).toEqual([lost]);
});

test('a refused step is refused, and nothing is read', async () => {
  let reads = 0;
  const lifecycle = knownWhenDone(
    lifecycleWith(() => Promise.reject(new Error('refused'))),
    { refresh: async () => void reads++, onError: (error) => expect.unreachable(String(error)) },
  );
  await expect(lifecycle.rollback('cart_summary', step)).rejects.toThrow('refused');
  expect(reads).toBe(0);
});
