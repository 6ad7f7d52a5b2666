import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineReactor, globalPosition, type Reactor } from '../../src/index.ts';
import { begunReactor } from '../../src/reactors/begun-reactor.ts';
import { declaredVersions, versionedReactors, versionsOf } from '../../src/reactors/versioned-reactor.ts';

const order = defineEvents('order', { Placed: z.object({}), Shipped: z.object({}), Lost: z.object({}) });

const version = (number: number, options: Partial<Reactor> & { types?: ('Placed' | 'Shipped' | 'Lost')[] } = {}) => {
  const { types = ['Placed'], from = 'now', concurrency = 1 } = options;
  const handle = Object.fromEntries(types.map((type) => [type, async () => {}]));
  return defineReactor({ name: 'shipping', version: number, events: order, handle, from, concurrency });
};

describe('versions of a reactor', () => {
  test('stand beside each other, and read the event types of all of them', () => {
    const other = defineReactor({ name: 'mails', events: order, handle: { Lost: async () => {} } });
    const declared = [version(2, { types: ['Placed', 'Lost'] }), other, version(1, { types: ['Placed', 'Shipped'] })];
    expect(defineConfig({ reactors: declared }).reactors).toEqual(declared);
    expect(versionedReactors(declared)).toMatchObject([
      {
        name: 'shipping',
        filter: [{ family: 'order', types: ['Placed', 'Shipped', 'Lost'] }],
        versions: [{ version: 1 }, { version: 2 }],
      },
      { name: 'mails', filter: [{ family: 'order', types: ['Lost'] }], versions: [{ version: 1 }] },
    ]);
  });

  test('are announced by their numbers, unless there is only version 1', () => {
    expect(declaredVersions([version(1)])).toEqual({});
    expect(declaredVersions([version(2)])).toEqual({ shipping: [2] });
    const declared = declaredVersions([version(3), version(1)]);
    expect(versionsOf(declared, 'shipping')).toEqual([1, 3]);
    expect(versionsOf(declared, 'toString')).toEqual([1]);
  });

  test.each([
    [[version(2), version(2)], "defineReactor('shipping'): is declared twice. Give one of them another name"],
    [
      [version(1, { from: 'beginning' }), version(2)],
      "'from' belongs to the reactor, so all its versions declare the same; version 1 has beginning, version 2 has now.",
    ],
    [
      [version(2, { concurrency: 5 }), version(1)],
      "'concurrency' belongs to the reactor, so all its versions declare the same; version 1 has 1, version 2 has 5.",
    ],
  ])('that contradict each other are refused', (reactors, message) => {
    expect(() => defineConfig({ reactors })).toThrow(message);
  });

  test.each([0, 1.5, '2'])('are whole numbers from 1 on, not %s', (number) => {
    expect(() => version(number as number)).toThrow(`'version' is a whole number from 1 on, found ${number}.`);
  });
});

describe('the version of an event', () => {
  const place = (position: number) => globalPosition(BigInt(position));
  const begun = [
    { version: 1, after: place(0) },
    { version: 2, after: place(10) },
    { version: 3, after: place(10) },
    { version: 4, after: place(20) },
  ];
  const reactor = (...numbers: number[]) => {
    const [found] = versionedReactors(numbers.map((number) => version(number)));
    return begunReactor(found ?? expect.unreachable(), begun);
  };

  test('is the highest one that begins before its position', () => {
    const { at } = reactor(1, 2, 3, 4);
    const versions = [1, 10, 11, 20, 21, 50].map((position) => at(place(position))?.version);
    expect(versions).toEqual([1, 1, 3, 3, 4, 4]);
    expect(reactor(1, 4).at(place(20))).toBeUndefined();
  });

  test.each([
    [[1, 3, 4], 0, undefined, undefined],
    [[1, 4], 0, 10, 'shipping@3 handles the events at positions 11 to 20, and this process does not declare it.'],
    [[1, 4], 15, 15, 'shipping@3 handles the events at positions 11 to 20'],
    [[1, 4], 20, undefined, undefined],
    [[4], 0, 0, 'shipping@1 handles the events up to position 10'],
    [[1, 3], 0, 20, 'shipping@4 handles the events after position 20'],
    [[1], 50, 50, 'shipping@4 handles the events after position 20'],
  ])('ends a program with the versions %j that continues from %i', (declares, checkpoint, end, message) => {
    const found = reactor(...declares).endAfter(place(checkpoint));
    expect(found?.position).toBe(end === undefined ? undefined : place(end));
    expect(found?.error.code).toBe(message && 'REACTOR_VERSION_UNKNOWN');
    if (message !== undefined) expect(found?.error.message).toContain(message);
  });
});
