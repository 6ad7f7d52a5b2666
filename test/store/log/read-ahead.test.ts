import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { beginning, type GlobalPosition, globalPosition } from '../../../src/events/global-position.ts';
import { createReadAhead } from '../../../src/store/log/read-ahead.ts';
import type { LogPage, ReadAllOptions } from '../../../src/store/log/read-events.ts';

/** A log of the positions 1, 2, 3…, or only the even ones if a filter is given; its events are the positions themselves. */
function fakeLog(eventBytes = 1) {
  let asked = 0;
  const copyPage = async ({ after, upTo, filter, limit }: ReadAllOptions) => {
    asked++;
    const lines: Buffer[] = [];
    for (let position = after + 1n; position <= upTo && lines.length < limit; position++) {
      if (filter === undefined || position % 2n === 0n) lines.push(Buffer.from(`${position}`));
    }
    const full = lines.length === limit;
    const rows = { bytes: Buffer.concat(lines), ends: lines.map((_, index) => (index + 1) * eventBytes) };
    return { rows, lines, upTo: full ? globalPosition(String(lines.at(-1))) : upTo, full };
  };
  const decode = async ({ lines }: { readonly lines: readonly Buffer[] }) =>
    lines.map(String) as unknown as LogPage['events']; // nothing reads inside
  return { copyPage, decode, asked: () => asked };
}

const evens = [{ family: 'f', types: ['Even'] }];

describe('reading ahead', () => {
  test('returns the same pages as reading without it, for any readers and horizons', async () => {
    const step = fc.record({
      reader: fc.constantFrom(0, 0, 0, 1, 2, 3),
      horizon: fc.oneof(fc.nat(40), fc.nat(5)),
      limit: fc.constantFrom(5, 5, 5, 2),
      jump: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(60) }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { copyPage, decode } = fakeLog();
        const read = createReadAhead(copyPage, decode);
        const cursors: GlobalPosition[] = [beginning, beginning, beginning, beginning];
        for (const { reader, horizon, limit, jump } of steps) {
          const after = jump === null ? (cursors[reader] ?? beginning) : globalPosition(BigInt(jump));
          const upTo = globalPosition(after + BigInt(horizon));
          const options = { after, upTo, limit, ...(reader % 2 === 0 ? {} : { filter: evens }) };
          const page = await read(options);
          // The page may end earlier, at the horizon of the time when it was requested, but never later, and it skips nothing.
          expect(page.upTo <= upTo).toBe(true);
          expect(page.events).toEqual(await decode(await copyPage({ ...options, upTo: page.upTo })));
          if (horizon > 0) expect(page.upTo > after).toBe(true);
          cursors[reader] = page.upTo;
        }
      }),
    );
  });

  test('requests each page once, and requests no page that nobody may need', async () => {
    const { copyPage, decode, asked } = fakeLog();
    const read = createReadAhead(copyPage, decode);
    const upTo = globalPosition(10n);
    let after = beginning;
    let pages = 0;
    while (after < upTo) {
      after = (await read({ after, upTo, limit: 2 })).upTo;
      pages++;
    }
    expect(asked()).toBe(pages);
    await read({ after: beginning, upTo, limit: 2 });
    expect(asked()).toBe(pages + 1);
  });

  test('asks for fewer events if the last ones were large, at least for one', async () => {
    for (const [eventBytes, expected] of [
      [1000, 100],
      [2 ** 20, 8],
      [2 ** 30, 1],
    ] as const) {
      const { copyPage, decode } = fakeLog(eventBytes);
      const limits: number[] = [];
      const noted = (options: ReadAllOptions) => {
        limits.push(options.limit);
        return copyPage(options);
      };
      const read = createReadAhead(noted, decode);
      const upTo = globalPosition(1000n);
      let after = beginning;
      for (let pages = 0; pages < 3; pages++) after = (await read({ after, upTo, limit: 100 })).upTo;
      expect(limits).toEqual([100, expected, expected, expected]);
    }
  });

  test('passes an error to the reader that reads on', async () => {
    const { copyPage, decode } = fakeLog();
    let fail = false;
    const failing = (options: ReadAllOptions) => (fail ? Promise.reject(new Error('lost')) : copyPage(options));
    const read = createReadAhead(failing, decode);
    const upTo = globalPosition(10n);
    await read({ after: beginning, upTo, limit: 2 });
    const second = read({ after: globalPosition(2n), upTo, limit: 2 });
    fail = true;
    await second;
    await expect(read({ after: globalPosition(4n), upTo, limit: 2 })).rejects.toThrow('lost');
    fail = false;
    expect((await read({ after: globalPosition(4n), upTo, limit: 2 })).upTo).toBe(6n);
  });
});
