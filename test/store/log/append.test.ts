import { describe, expect, onTestFinished, test } from 'vitest';
import { ConcurrencyConflict, InvalidInput, RefoldError } from '../../../src/errors.ts';
import type { ExpectedVersion } from '../../../src/events/event.ts';
import type { GlobalPosition } from '../../../src/events/global-position.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account, all, deposited, transfer } from './families.ts';

const { database: testDatabase, db, log } = await databaseOfFile(account, transfer);

const everything = () => db.query({ text: 'select * from refold.events order by position' });
const streams = () => db.query({ text: 'select * from refold.streams order by family, stream_id' });

describe('an append', () => {
  test('is announced after its commit and before its caller has the result, and others are not announced', async () => {
    const told: GlobalPosition[] = [];
    const telling = createEventLog(db, [account], { onAppended: (position) => told.push(position) });
    const append = (amount: number, idempotencyKey?: string) =>
      telling.append({
        family: account,
        streamId: 'told',
        events: [deposited(amount), deposited(amount)],
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      });
    const { position } = await append(1, 'told');
    expect(told).toEqual([position]);
    await append(1, 'told');
    await expect(
      telling.append({ family: account, streamId: 'told', events: [deposited(1)], expectedVersion: 'no-stream' }),
    ).rejects.toThrow(ConcurrencyConflict);
    await db.transaction((tx) => telling.append({ family: account, streamId: 'told', events: [deposited(1)] }, tx));
    expect(told).toEqual([position]);
    const joined = await Promise.all([append(2), append(3)]);
    expect(told.at(-1)).toBe(joined[1]?.position);
    await telling.appendInOrder([{ family: account, streamId: 'told', events: [deposited(4)] }]);
    expect(told.at(-1)).toBe(await log.head());
  });

  test('returns what it recorded, equal to a later read', async () => {
    const result = await log.append({
      family: account,
      streamId: 'recorded',
      events: [
        { type: 'Opened', payload: { owner: 'Ärne "🦉" \\ Olsen' }, metadata: { actor: 'a1' } },
        { ...deposited(5), id: 'A0000000-0000-4000-8000-00000000000A' },
      ],
      metadata: { correlationId: 'c1', actor: 'nobody', depth: { of: [1, null] } },
    });
    expect(result).toMatchObject({
      duplicate: false,
      position: result.firstPosition + 1n,
      streams: [{ family: 'account', streamId: 'recorded', version: 2 }],
    });
    expect(result.events[0]).toMatchObject({
      streamPosition: 1,
      position: result.firstPosition,
      payload: { owner: 'Ärne "🦉" \\ Olsen' },
      payloadVersion: 1,
      metadata: { correlationId: 'c1', actor: 'a1', depth: { of: [1, null] } },
      recordedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z$/),
    });
    expect(result.events[1]).toMatchObject({
      id: 'a0000000-0000-4000-8000-00000000000a',
      metadata: { actor: 'nobody' },
    });
    expect(await all(log.readStream(account, 'recorded'))).toEqual(result.events);
  });

  test.for<[existing: number, expectedVersion: ExpectedVersion, outcome: 'written' | 'refused']>([
    [0, 'any', 'written'],
    [2, 'any', 'written'],
    [0, 'no-stream', 'written'],
    [2, 'no-stream', 'refused'],
    [0, 'stream-exists', 'refused'],
    [2, 'stream-exists', 'written'],
    [0, 0, 'written'],
    [2, 0, 'refused'],
    [0, 2, 'refused'],
    [2, 1, 'refused'],
    [2, 2, 'written'],
    [2, 3, 'refused'],
  ])('to a stream of %i events that expects %s is %s', async ([existing, expectedVersion, outcome]) => {
    const streamId = `expects ${existing} ${expectedVersion}`;
    if (existing > 0)
      await log.append({ family: account, streamId, events: Array.from({ length: existing }, () => deposited(1)) });
    const append = log.append({ family: account, streamId, events: [deposited(7)], expectedVersion });
    if (outcome === 'written') {
      expect((await append).streams[0]?.version).toBe(existing + 1);
      return;
    }
    const error = await append.catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ConcurrencyConflict);
    expect(error).toMatchObject({
      expected: expectedVersion,
      actual: existing,
      fields: { family: 'account', streamId },
    });
    expect(await log.streamVersion(account, streamId)).toBe(existing);
    expect(await all(log.readStream(account, streamId))).toHaveLength(existing);
  });

  test('to several streams is written to all of them or to none of them', async () => {
    const result = await log.appendToStreams({
      streams: [
        { family: account, streamId: 'from', events: [deposited(1), deposited(2)] },
        {
          family: transfer,
          streamId: 't',
          events: [{ type: 'Booked', payload: { note: 'n' } }],
          expectedVersion: 'no-stream',
        },
        { family: account, streamId: 'to', events: [] },
      ],
    });
    expect(result.streams.map(({ version }) => version)).toEqual([2, 1, 0]);
    expect(result.events.map(({ streamId, streamPosition }) => [streamId, streamPosition])).toEqual([
      ['from', 1],
      ['from', 2],
      ['t', 1],
    ]);
    const [eventsBefore, streamsBefore] = [await everything(), await streams()];
    const refused = log.appendToStreams({
      streams: [
        { family: account, streamId: 'from', events: [deposited(1)] },
        { family: account, streamId: 'new one', events: [deposited(1)] },
        { family: transfer, streamId: 't', events: [], expectedVersion: 4 },
      ],
    });
    await expect(refused).rejects.toMatchObject({ expected: 4, actual: 1, fields: { streamId: 't' } });
    expect([await everything(), await streams()]).toEqual([eventsBefore, streamsBefore]);
  });

  test('without a version check is accepted during concurrent appends to the stream', async () => {
    const logs = [log, createEventLog(db, [account])];
    const versions = await Promise.all(
      Array.from({ length: 16 }, async (_, index) => {
        const result = await logs[index % 2]?.append({ family: account, streamId: 'hot', events: [deposited(index)] });
        return result?.streams[0]?.version;
      }),
    );
    expect(versions.sort((a = 0, b = 0) => a - b)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
  });
});

describe('an idempotency key', () => {
  const request = (streamId: string, idempotencyKey: string) =>
    ({
      family: account,
      streamId,
      events: [deposited(3), deposited(4)],
      idempotencyKey,
      expectedVersion: 'no-stream',
    }) as const;

  test('returns the result of the first append for a second one, which writes nothing', async () => {
    const first = await log.append(request('key', 'k1'));
    const second = await log.append(request('key', 'k1'));
    expect(first.duplicate).toBe(false);
    expect(second).toEqual({ ...first, duplicate: true });
    expect(await log.streamVersion(account, 'key')).toBe(2);
  });

  test('is used once by concurrent appends, joined or not', async () => {
    const other = createEventLog(db, [account]);
    const results = await Promise.all(
      [log, log, log, other, other, other, log].map((eventLog) => eventLog.append(request('key at once', 'k2'))),
    );
    expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    const [first] = results;
    for (const result of results) expect(result).toEqual({ ...first, duplicate: result.duplicate });
  });

  test('is free again after a refused append', async () => {
    await log.append({ family: account, streamId: 'key refused', events: [deposited(1)] });
    await expect(log.append(request('key refused', 'k3'))).rejects.toBeInstanceOf(ConcurrencyConflict);
    const retried = await log.append({ ...request('key refused', 'k3'), expectedVersion: 1 });
    expect(retried).toMatchObject({ duplicate: false, streams: [{ version: 3 }] });
    const inOrder = createEventLog(db, [account], { maxInFlight: 1 });
    const joined = await Promise.allSettled([
      inOrder.append({ ...request('key refused', 'k4'), expectedVersion: 3 }),
      inOrder.append({ ...request('key refused', 'k5'), expectedVersion: 8 }),
      inOrder.append({ ...request('key refused', 'k5'), expectedVersion: 5 }),
    ]);
    expect(joined.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });
});

describe('an append is validated before anything is written:', () => {
  const tooLong = 'x'.repeat(1025);
  test.for<[what: string, request: Parameters<EventLog['append']>[0], problem: object]>([
    [
      'an empty stream id',
      { family: account, streamId: '', events: [deposited(1)] },
      { code: 'BAD_USER_INPUT', issues: [{ path: ['streamId'] }] },
    ],
    ['a long stream id', { family: account, streamId: tooLong, events: [deposited(1)] }, { code: 'BAD_USER_INPUT' }],
    [
      'NUL in a stream id',
      { family: account, streamId: 'a\u0000', events: [deposited(1)] },
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'half a character in a stream id',
      { family: account, streamId: '\ud83e', events: [deposited(1)] },
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'an empty idempotency key',
      { family: account, streamId: 's', events: [deposited(1)], idempotencyKey: '' },
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'a negative version',
      { family: account, streamId: 's', events: [deposited(1)], expectedVersion: -1 },
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'a version that is not a number',
      { family: account, streamId: 's', events: [deposited(1)], expectedVersion: Number.NaN },
      { code: 'BAD_USER_INPUT' },
    ],
    ['no events', { family: account, streamId: 's', events: [] }, { code: 'BAD_USER_INPUT' }],
    [
      'an id that is not a UUID',
      { family: account, streamId: 's', events: [{ ...deposited(1), id: '1' }] },
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'an unknown type',
      { family: account, streamId: 's', events: [deposited(1), { type: 'Opend', payload: {} }] },
      { code: 'UNKNOWN_EVENT_TYPE' },
    ],
    [
      'a wrong payload',
      { family: account, streamId: 's', events: [deposited(1), { type: 'Deposited', payload: { amount: '1' } }] },
      { code: 'INVALID_PAYLOAD' },
    ],
    [
      'NUL in a payload',
      { family: account, streamId: 's', events: [{ type: 'Opened', payload: { owner: 'a\u0000b' } }] },
      { code: 'INVALID_PAYLOAD' },
    ],
    [
      'half a character in a payload',
      { family: account, streamId: 's', events: [{ type: 'Opened', payload: { owner: '\\\udead' } }] },
      { code: 'INVALID_PAYLOAD' },
    ],
  ])('%s', async ([, request, problem]) => {
    const before = await everything();
    const error = await log.append(request as Parameters<EventLog['append']>[0]).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(RefoldError);
    expect(error).toMatchObject(problem);
    expect(await everything()).toEqual(before);
  });

  test('the same stream twice in one append is refused', async () => {
    const twice = { family: account, streamId: 'twice', events: [deposited(1)] };
    await expect(log.appendToStreams({ streams: [twice, twice] })).rejects.toBeInstanceOf(InvalidInput);
  });

  test('a text that only looks like NUL is accepted', async () => {
    const payload = { owner: '\\u0000 \\\\u0000 \\ud800' };
    const { events } = await log.append({
      family: account,
      streamId: 'looks like',
      events: [{ type: 'Opened', payload }],
    });
    expect(events[0]?.payload).toEqual(payload);
    expect((await all(log.readStream(account, 'looks like')))[0]?.payload).toEqual(payload);
  });
});

test('events can’t be changed or removed', async () => {
  await log.append({ family: account, streamId: 'for ever', events: [deposited(1)] });
  const superuser = createDatabase({ url: testDatabase.superuserUrl }); // an application lacks the privilege, too
  onTestFinished(() => superuser.close());
  for (const change of [`update refold.events set type = 'x'`, 'delete from refold.events', 'truncate refold.events']) {
    await expect(superuser.query({ text: change })).rejects.toMatchObject({
      code: 'DATABASE_ERROR',
      fields: { sqlState: '23001' },
    });
  }
});
