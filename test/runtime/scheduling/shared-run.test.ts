import { expect, test } from 'vitest';
import { createSharedRun } from '../../../src/runtime/scheduling/shared-run.ts';

test('calls during a run share the next one, and runs never overlap', async () => {
  const begun: PromiseWithResolvers<void>[] = [];
  const looks = createSharedRun(() => {
    const run = Promise.withResolvers<void>();
    begun.push(run);
    return run.promise;
  });
  const first = looks.run();
  const others = Array.from({ length: 100 }, () => looks.run());
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await first;
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve();
  await Promise.all(others);
  await looks.idle();
  expect(begun).toHaveLength(2);
});

test('a failed run rejects for those who waited for it, and the next one runs', async () => {
  let runs = 0;
  const looks = createSharedRun(async () => {
    if (++runs === 1) throw new Error('away');
  });
  const first = looks.run();
  const second = looks.run();
  await expect(first).rejects.toThrow('away');
  await second;
  await looks.idle();
  expect(runs).toBe(2);
});
