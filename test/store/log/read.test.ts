import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { defineEvents } from '../../../src/events/event-family.ts';
import { beginning, globalPosition } from '../../../src/events/global-position.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import type { FamilyFilter } from '../../../src/store/log/read-events.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { account, all, deposited, transfer } from './families.ts';

const { db, log } = await databaseOfFile(account, transfer);

const note = (text: string) => ({ type: 'Booked', payload: { note: text } }) as const;

describe('a stream', () => {
  const length = 2500; // more than two pages
  let recorded: readonly RecordedEvent[];
  beforeAll(async () => {
    const events = Array.from({ length }, (_, index) => deposited(index));
    recorded = (await log.append({ family: account, streamId: 'long', events })).events;
    await log.append({ family: account, streamId: 'long by name', events: [deposited(1)] });
    await log.append({ family: transfer, streamId: 'long', events: [note('of another family')] });
  });

  test('is read in both directions, whole or in part, as an array is sliced', async () => {
    const edge = fc.oneof(fc.integer({ min: 0, max: length + 5 }), fc.constantFrom(1, 999, 1000, 1001, 2000, length));
    const part = fc.record(
      { direction: fc.constantFrom('forward', 'backward'), from: edge, to: edge, limit: edge },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(part, async (options) => {
        const { direction = 'forward', from = 1, to = length, limit = length } = options;
        const inRange = recorded.filter(({ streamPosition }) => streamPosition >= from && streamPosition <= to);
        const expected = (direction === 'forward' ? inRange : inRange.toReversed()).slice(0, limit);
        expect(await all(log.readStream(account, 'long', options))).toEqual(expected);
      }),
      { numRuns: effort(40, 10) },
    );
  });

  test('is read as of a position of the log or a time', async () => {
    const [first, second] = [
      await log.append({ family: account, streamId: 'as of', events: [deposited(1)] }),
      await log.append({ family: account, streamId: 'as of', events: [deposited(2)] }),
    ];
    const until = async (options: object) => (await all(log.readStream(account, 'as of', options))).length;
    expect(await until({ upTo: first.position })).toBe(1);
    expect(await until({ upTo: second.position })).toBe(2);
    expect(await until({ recordedUntil: first.events[0]?.recordedAt })).toBe(1);
    expect(await until({ recordedUntil: second.events[0]?.recordedAt })).toBe(2);
    expect(await until({ recordedUntil: '2000-01-01T00:00:00Z' })).toBe(0);
  });

  test('that does not exist is empty and has version 0', async () => {
    expect(await all(log.readStream(account, 'nowhere'))).toEqual([]);
    expect(await log.streamVersion(account, 'nowhere')).toBe(0);
    expect(await log.streamVersion(account, 'long')).toBe(length);
  });

  test('is not read with a limit that is not a number of events', async () => {
    await expect(all(log.readStream(account, 'long', { limit: 1.5 }))).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
    });
  });
});

describe('the whole log', () => {
  test('is read in pages of any size with any filter, as an array is', async () => {
    const odd = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\u0000', ''));
    const event = fc.oneof(
      fc.nat().map((amount) => ({ family: account, event: deposited(amount) })),
      odd.map((owner) => ({ family: account, event: { type: 'Opened', payload: { owner } } as const })),
      odd.map((text) => ({ family: transfer, event: note(text) })),
    );
    const filter = fc.option(
      fc
        .tuple(fc.subarray([...account.types]), fc.subarray([...transfer.types]))
        .map(([ofAccount, ofTransfer]): FamilyFilter[] => [
          { family: 'account', types: ofAccount },
          { family: 'transfer', types: ofTransfer },
        ]),
      { nil: undefined },
    );
    const streamId = odd.filter((text) => text !== '');
    const events = fc.array(fc.tuple(streamId, event, fc.dictionary(odd, fc.jsonValue())), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(events, fc.integer({ min: 1, max: 8 }), filter, async (batch, limit, filter) => {
        const start = await log.head();
        const written: RecordedEvent[] = [];
        for (const [streamId, { family, event }, metadata] of batch) {
          const result = await log.append({ family, streamId, events: [event], metadata } as Parameters<
            EventLog['append']
          >[0]);
          written.push(...result.events);
        }
        const upTo = await log.horizon();
        const read: RecordedEvent[] = [];
        let after = start;
        while (after < upTo) {
          const page = await log.readAll({ after, upTo, limit, ...(filter === undefined ? {} : { filter }) });
          expect(page.events.length).toBeLessThanOrEqual(limit);
          expect(page.upTo > after).toBe(true);
          // Nobody else appends, so the page returned along with the horizon is the same.
          const tail = await log.readTail({ after, limit, ...(filter === undefined ? {} : { filter }) });
          const { bytes: _, ...same } = page; // measured in another form
          expect(tail).toMatchObject({ ...same, horizon: upTo });
          read.push(...page.events);
          after = page.upTo;
        }
        const passes = (type: string, family: string) =>
          filter?.some((f) => f.family === family && f.types.includes(type)) ?? true;
        expect(read).toEqual(written.filter(({ type, family }) => passes(type, family)));
      }),
      { numRuns: effort(100, 25) },
    );
  });

  test('up to an older horizon omits later events', async () => {
    const upTo = await log.horizon();
    await log.append({ family: account, streamId: 'later', events: [deposited(1)] });
    const { events } = await log.readAll({ after: globalPosition(upTo - 1n), upTo, limit: 10 });
    expect(events.map(({ position }) => position)).toEqual([upTo]);
  });

  test('is not read with a filter that names undeclared families or types', async () => {
    const read = (filter: FamilyFilter[]) =>
      log.readAll({ after: beginning, upTo: globalPosition(1n), filter, limit: 1 });
    await expect(read([{ family: 'acount', types: ['Opened'] }])).rejects.toMatchObject({
      code: 'INVALID_DECLARATION',
      message: expect.stringContaining("Did you mean 'account'?"),
    });
    await expect(read([{ family: 'account', types: ['Openend'] }])).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT_TYPE',
      message: expect.stringContaining("Did you mean 'Opened'?"),
    });
    await expect(
      log.readTail({ after: beginning, filter: [{ family: 'acount', types: [] }], limit: 1 }),
    ).rejects.toThrow("Did you mean 'account'?");
  });
});

describe('events of older code', () => {
  const today = defineEvents(
    'transfer',
    { Booked: z.object({ text: z.string(), cents: z.int() }) },
    {
      upcasters: {
        Booked: [
          ({ note }: { note: string }) => ({ text: note }),
          ({ text }: { text: string }) => ({ text, cents: 0 }),
        ],
      },
    },
  );

  test('have the current payload in every kind of read', async () => {
    const old = await log.append({
      family: transfer,
      streamId: 'upcast',
      events: [note('x')],
      idempotencyKey: 'upcast',
    });
    const newer = createEventLog(db, [today]);
    const event = { ...old.events[0], payload: { text: 'x', cents: 0 }, payloadVersion: 1 };
    expect(await all(newer.readStream(today, 'upcast'))).toEqual([event]);
    const upTo = await newer.horizon();
    const after = globalPosition(old.position - 1n);
    expect((await newer.readAll({ after, upTo, limit: 1 })).events).toEqual([event]);
    expect((await newer.readTail({ after, limit: 1 })).events).toEqual([event]);
    const payload = { text: 'y', cents: 1 };
    const again = {
      family: today,
      streamId: 'upcast',
      events: [{ type: 'Booked', payload }],
      idempotencyKey: 'upcast',
    } as const;
    expect((await newer.append(again)).events).toEqual([event]);
    const { events } = await newer.append({ ...again, idempotencyKey: 'upcast 2' });
    expect(events).toMatchObject([{ payload, payloadVersion: 3 }]);
  });

  test('of a type that the family no longer defines are left out of a filter, and kept in their stream', async () => {
    const smaller = defineEvents('account', { Opened: account.schemas.Opened });
    const { events } = await log.append({
      family: account,
      streamId: 'outlived',
      events: [deposited(1), { type: 'Opened', payload: { owner: 'o' } }],
    });
    const smallerLog = createEventLog(db, [smaller]);
    const after = globalPosition((events[0]?.position ?? 0n) - 1n);
    const page = await smallerLog.readAll({ after, upTo: await smallerLog.horizon(), limit: 10 });
    expect(page.events).toEqual(events.slice(1));
    expect((await smallerLog.readTail({ after, limit: 10 })).events).toEqual(events.slice(1));
    expect(await all(smallerLog.readStream(smaller, 'outlived'))).toEqual(events);
  });
});

test('two families with the same name are refused', () => {
  const twin = defineEvents('account', { Other: z.object({}) });
  expect(() => createEventLog(db, [account, twin])).toThrow(/'account'\): is declared twice/);
});
