import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../../src/events/global-position.ts';
import { createConsumer } from '../../../src/runtime/consumers/consumer.ts';
import { eventProcessor } from '../../../src/runtime/consumers/event-processor.ts';
import { createHistory } from '../../../src/runtime/consumers/history.ts';
import {
  createLogSource,
  type LogPollTimer,
  parseNotifiedPosition,
} from '../../../src/runtime/consumers/log-source.ts';
import type { ReadAllOptions, ReadTailOptions } from '../../../src/store/log/read-events.ts';
import { effort } from '../../support/effort.ts';

const all = [{ family: 'f', types: ['Even', 'Odd'] }];
const even = [{ family: 'f', types: ['Even'] }];
const unknown = [{ family: 'g', types: ['Unknown'] }];

/** A log of the events 1, 2, 3… Each response takes a turn or more, and reflects the log at the time of the request. */
function fakeLog({ keepsSnapshot = false, turns = () => 1 }: { keepsSnapshot?: boolean; turns?: () => number } = {}) {
  const asked: string[] = [];
  const headOf = (known: GlobalPosition | null | undefined) => ({
    horizon: position(log.end),
    anchor: `${log.history}-${log.end}`,
    knownAnchor: known === null || known === undefined || known > log.end ? null : `${log.history}-${known}`,
    serverStart: log.serverStart,
  });
  const log = {
    end: 0,
    /** A log with another history has other events at all positions. */
    history: 'a',
    serverStart: 1n,
    asked,
    async readHead(known: GlobalPosition | null) {
      asked.push('head');
      return answer(headOf(known));
    },
    async readAll({ after, upTo, anchor, filter = all, limit }: ReadAllOptions) {
      asked.push('page');
      if (anchor !== `${log.history}-${upTo}`) throw new RefoldError('HISTORY_CHANGED', 'changed');
      expect(upTo <= log.end).toBe(true);
      return answer(pageOf(after, upTo, filter, limit));
    },
    async readTail({ after, filter = all, limit, known }: ReadTailOptions) {
      asked.push('tail');
      if (filter === unknown) throw new Error('unknown family');
      const head = headOf(known);
      if (keepsSnapshot || after >= head.horizon) return answer({ ...head, events: [], bytes: 0, upTo: after });
      return answer({ ...head, ...pageOf(after, head.horizon, filter, limit) });
    },
  };
  return log;

  async function answer<T>(value: T): Promise<T> {
    for (let left = turns(); left > 0; left--) await Promise.resolve();
    return value;
  }
}

function pageOf(after: GlobalPosition, upTo: GlobalPosition, filter: ReadAllOptions['filter'], limit: number) {
  const events: RecordedEvent[] = [];
  for (let at = after + 1n; at <= upTo && events.length < limit; at++) {
    const type = at % 2n === 0n ? 'Even' : 'Odd';
    if (filter?.some(({ types }) => types.includes(type))) events.push({ position: at, type } as RecordedEvent); // only these fields are read
  }
  const last = events.at(-1);
  return { events, bytes: 0, upTo: last && events.length === limit ? last.position : upTo };
}

async function manyTurns(): Promise<void> {
  for (let left = 100; left > 0; left--) await Promise.resolve();
}

test.each([
  ['1042', 1042n],
  ['', undefined],
  ['x', undefined],
  ['-1', undefined],
  ['1'.repeat(16), undefined],
  [undefined, undefined],
])('the position in a notification of %j is %s', (payload, told) => {
  expect(parseNotifiedPosition(payload)).toBe(told);
});

const silent = pino({ level: 'silent' });
const position = (at: number) => globalPosition(BigInt(at));
const numbers = (events: readonly RecordedEvent[]) => events.map((event) => Number(event.position));

/** Sleeps until it is woken, also by an earlier wake-up. */
function fakePollTimer(): LogPollTimer & { readonly waits: number } {
  let woken = false;
  let end = () => {};
  const waker = {
    waits: 0,
    async wait() {
      waker.waits++;
      if (!woken) await new Promise<void>((resolve) => (end = resolve));
      woken = false;
    },
    foundWork() {},
    wake() {
      woken = true;
      end();
    },
  };
  return waker;
}

/** A source that has read a log of that many events up to its head. */
async function sourceAtHead(log: ReturnType<typeof fakeLog>, end = 1) {
  log.end = end;
  const waker = fakePollTimer();
  const history = createHistory(silent);
  const source = createLogSource(log, waker, history);
  await source.read(position(end), all, 1000);
  log.asked.length = 0;
  return { source, waker, history };
}

describe('a log that was cut', () => {
  test('is noticed by the next poll, and what was known of it is forgotten', async () => {
    const log = fakeLog();
    const { source, history } = await sourceAtHead(log, 70);
    Object.assign(log, { history: 'b', end: 40 });
    await expect(source.read(position(70), all, 1000)).rejects.toMatchObject({ code: 'HISTORY_CHANGED' });
    expect(history.cuts).toBe(1);
    expect(source.cuts).toBe(1);
    log.end = 90;
    expect(numbers((await source.read(position(10), all, 5)).events)).toEqual([11, 12, 13, 14, 15]);
    expect(history.cuts).toBe(1);
  });

  test('is noticed by a page of known events, which is not returned', async () => {
    const log = fakeLog();
    const { source, history } = await sourceAtHead(log, 70);
    Object.assign(log, { history: 'b', end: 90 });
    await expect(source.read(position(10), all, 1000)).rejects.toMatchObject({ code: 'HISTORY_CHANGED' });
    expect(history.cuts).toBe(1);
    expect((await source.read(position(10), all, 1000)).upTo).toBe(90n);
  });

  test('fails every reading in progress', async () => {
    const log = fakeLog();
    const { source } = await sourceAtHead(log, 70);
    Object.assign(log, { history: 'b', end: 90 });
    const readings = [70, 70, 10].map((after) => source.read(position(after), all, 1000));
    expect((await Promise.allSettled(readings)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
  });

  test('is noticed after a restart that another component has reported', async () => {
    const log = fakeLog();
    const { source, history } = await sourceAtHead(log, 70);
    Object.assign(log, { history: 'b', end: 90, serverStart: 2n });
    history.note(2n);
    await expect(source.read(position(70), all, 1000)).rejects.toMatchObject({ code: 'HISTORY_CHANGED' });
  });

  test('is not the same as a restart alone', async () => {
    const log = fakeLog();
    const { source, history } = await sourceAtHead(log, 70);
    Object.assign(log, { end: 72, serverStart: 2n });
    expect(numbers((await source.read(position(70), all, 1000)).events)).toEqual([71, 72]);
    expect([history.cuts, history.era]).toEqual([0, 1]);
  });

  test('wakes a waiting reading, and ends the processors that were added before', async () => {
    const log = fakeLog();
    const { source, history } = await sourceAtHead(log, 70);
    const consumer = createConsumer({ source });
    const handled: number[] = [];
    const processor = eventProcessor({
      id: 'mine',
      events: [],
      checkpoint: position(70),
      handle: async (events) => void handled.push(...numbers(events)),
    });
    consumer.add([processor]);
    Object.assign(log, { history: 'b', end: 90 });
    history.cut(position(70));
    await expect(consumer.done).rejects.toMatchObject({ code: 'HISTORY_CHANGED' });
    expect(handled).toEqual([]);
    await consumer.stop();
  });
});

describe('the log as a source', () => {
  test('reads new events at the head in one query', async () => {
    const log = fakeLog();
    const { source } = await sourceAtHead(log);
    log.end = 3;
    const page = await source.read(position(1), all, 1000);
    expect({ ...page, events: numbers(page.events) }).toEqual({
      after: 1n,
      upTo: 3n,
      events: [2, 3],
      horizon: 3n,
      bytes: 0,
    });
    expect(await source.read(position(3), all, 1000)).toEqual({ after: 3n, upTo: 3n, events: [], horizon: 3n });
    expect(log.asked).toEqual(['tail', 'tail']);
  });

  test('polls once for all concurrent readings, and once for many pages', async () => {
    const log = fakeLog();
    const { source } = await sourceAtHead(log);
    log.end = 9;
    const pages = await Promise.all([1, 1, 1].map((after) => source.read(position(after), even, 1000)));
    expect(pages.map(({ events }) => numbers(events))).toEqual(Array(3).fill([2, 4, 6, 8]));
    expect(log.asked).toEqual(['tail', 'page', 'page']);
    for (const after of [0, 2, 4, 6]) await source.read(position(after), all, 2);
    expect(log.asked.slice(3)).toEqual(['page', 'page', 'page', 'page']);
  });

  test('reads many new events in pages of the reader’s size, and polls without events meanwhile', async () => {
    const log = fakeLog();
    const { source } = await sourceAtHead(log);
    const sizes: number[] = [];
    let after = position(1);
    const readOn = async (end: number) => {
      for (log.end = end; after < end; ) {
        const page = await source.read(after, all, 1000);
        sizes.push(page.events.length);
        after = page.upTo;
      }
    };
    await readOn(1501);
    await readOn(2001);
    await readOn(2010);
    await readOn(2020);
    expect(sizes).toEqual([100, 1000, 400, 500, 9, 10]);
    expect(log.asked).toEqual(['tail', 'page', 'page', 'head', 'page', 'head', 'page', 'tail']);
  });

  test('reads by pages if a poll can return no events', async () => {
    const log = fakeLog({ keepsSnapshot: true });
    const { source } = await sourceAtHead(log);
    log.end = 2;
    expect(numbers((await source.read(position(1), all, 1000)).events)).toEqual([2]);
    expect(log.asked).toEqual(['tail', 'page']);
  });

  test('does not pass the error of one reading to another', async () => {
    const log = fakeLog();
    const { source } = await sourceAtHead(log);
    log.end = 2;
    const [wrong, right] = await Promise.allSettled([
      source.read(position(1), unknown, 1000),
      source.read(position(1), all, 1000),
    ]);
    expect(wrong).toMatchObject({ status: 'rejected', reason: { message: 'unknown family' } });
    expect(right).toMatchObject({ status: 'fulfilled', value: { upTo: 2n } });
  });

  test('lets no reading sleep after another has seen more events', async () => {
    const log = fakeLog();
    const { source, waker } = await sourceAtHead(log);
    const { signal } = new AbortController();
    const asleep = source.wait(position(1), signal);
    log.end = 2;
    await source.read(position(1), all, 1000);
    await asleep;
    await source.wait(position(1), signal);
    expect(waker.waits).toBe(1);
  });

  test('polls at once for positions that it is notified of, and not for those that it has read', async () => {
    const log = fakeLog();
    const { source, waker } = await sourceAtHead(log);
    const { signal } = new AbortController();
    const slept = async () => {
      const before = waker.waits;
      const asleep = source.wait(position(log.end), signal);
      const isWoken = await Promise.race([asleep.then(() => true), manyTurns().then(() => false)]);
      if (!isWoken) {
        waker.wake();
        await asleep;
      }
      return waker.waits - before === 1 && !isWoken;
    };
    source.appended(position(1));
    expect(await slept()).toBe(true);
    // The append and its notification both report the position; the notification comes while the log is read.
    source.appended(position(2));
    expect(await slept()).toBe(false);
    log.end = 2;
    const page = source.read(position(1), all, 1000);
    source.appended(position(2));
    expect((await page).upTo).toBe(2n);
    source.appended(position(2));
    expect(await slept()).toBe(true);
    // A poll in progress was too early for this position, so another poll follows it.
    const early = source.read(position(2), all, 1000);
    source.appended(position(3));
    expect((await early).upTo).toBe(2n);
    expect(await slept()).toBe(false);
    // The event may be held back: one poll follows, and no more until another notification.
    expect((await source.read(position(2), all, 1000)).upTo).toBe(2n);
    expect(await slept()).toBe(true);
    // A notification without a position.
    source.appended();
    expect(await slept()).toBe(false);
  });

  // Three hundred logs are read here. This takes seconds at rest, and minutes if others need the processor.
  test('returns all its events to every reading once, in order, for any arrival and any reader that polls', {
    timeout: 300_000,
  }, async () => {
    const reader = fc.record({
      filter: fc.constantFrom(all, even),
      limit: fc.constantFrom(1, 7, 150),
      pauses: fc.array(fc.nat(6)),
    });
    const growth = fc.array(fc.constantFrom(1, 1, 2, 40, 300), { maxLength: 12 });
    const play = fc.record({
      readers: fc.array(reader, { minLength: 1, maxLength: 4 }),
      growth,
      turns: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1 }),
    });
    await fc.assert(
      fc.asyncProperty(play, async ({ readers, growth, turns }) => {
        let answers = 0;
        const log = fakeLog({ turns: () => turns[answers++ % turns.length] ?? 1 });
        const waker = fakePollTimer();
        const source = createLogSource(log, waker, createHistory(silent));
        const stop = new AbortController();
        const seen = readers.map(() => [] as number[]);
        const total = growth.reduce((sum, more) => sum + more, 0);
        const reading = readers.map(async ({ filter, limit, pauses }, index) => {
          for (let after = beginning, round = 0; after < total; round++) {
            const page = await source.read(after, filter, limit);
            expect(page.upTo <= log.end && page.upTo >= after && page.events.length <= limit).toBe(true);
            seen[index]?.push(...numbers(page.events));
            after = page.upTo;
            for (let left = pauses[round % pauses.length] ?? 0; left > 0; left--) await Promise.resolve();
            if (page.upTo >= page.horizon && after < total) await source.wait(after, stop.signal);
          }
        });
        for (const more of growth) {
          log.end += more;
          source.appended(more === 2 ? undefined : position(log.end));
          for (let left = turns[answers % turns.length] ?? 1; left > 0; left--) await Promise.resolve();
        }
        await Promise.all(reading);
        const positions = Array.from({ length: total }, (_, index) => index + 1);
        for (const [index, { filter }] of readers.entries())
          expect(seen[index]).toEqual(filter === all ? positions : positions.filter((at) => at % 2 === 0));
      }),
      { numRuns: effort(300, 100) },
    );
  });
});
