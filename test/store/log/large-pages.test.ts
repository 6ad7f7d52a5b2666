import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { beginning, globalPosition } from '../../../src/events/global-position.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { maxPageBytes } from '../../../src/store/statements/within-bytes.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { account } from './families.ts';

let testDatabase: TestDatabase;
let db: Database;
let log: EventLog;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url, maxConnections: 2 });
  log = createEventLog(db, [account]);
  // From small to larger than a page, of two kinds: those that can't be compressed, and those that take little space.
  const lengths = [10, 10, 2 ** 20, 20 * 2 ** 20, 10, ...Array(30).fill(2 ** 20), 10];
  await testDatabase.administer(`
    with random as materialized (select string_agg(md5(n::text), '') as text from generate_series(1, 32768) n)
    insert into refold.events (family, stream_id, stream_position, type, payload)
    select 'account', 'large', n, 'Opened', jsonb_build_object('owner', case when n % 3 = 0 then repeat('x', length) else rpad('', length, text) end)
    from random, unnest(array[${lengths.join()}]) with ordinality as event (length, n)`);
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});

const numbers = (events: readonly RecordedEvent[]) => events.map(({ streamPosition }) => streamPosition);
const all = Array.from({ length: 36 }, (_, index) => index + 1);
const largest = (events: readonly RecordedEvent[]) =>
  Math.max(...events.map(({ payload }) => JSON.stringify(payload).length));

test('a page ends when it is full of bytes, and the pages together hold each event once', async () => {
  const upTo = await log.horizon();
  const read: RecordedEvent[] = [];
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, limit: 5000 });
    expect(page.bytes).toBeLessThan(2 * maxPageBytes + largest(page.events) * 1.1);
    read.push(...page.events);
    after = page.upTo;
  }
  expect(numbers(read)).toEqual(all);
  // The connections that ended such a page are replaced.
  expect(await log.horizon()).toBe(upTo);
});

test('the same holds at the head, where the page comes with the horizon', async () => {
  const upTo = await log.horizon();
  const read: RecordedEvent[] = [];
  for (let after = beginning; after < upTo; ) {
    const tail = await log.readTail({ after, limit: 100 });
    expect(tail.upTo > after).toBe(true);
    expect(JSON.stringify(tail.events.slice(0, -1).map(({ payload }) => payload)).length).toBeLessThan(
      3 * maxPageBytes,
    );
    read.push(...tail.events);
    after = globalPosition(tail.upTo);
  }
  expect(numbers(read)).toEqual(all);
});

test('a stream of large events is read in both directions, from anywhere', async () => {
  for (const direction of ['forward', 'backward'] as const)
    for (const options of [{}, { from: 3, to: 20, limit: 9 }]) {
      const read: RecordedEvent[] = [];
      for await (const event of log.readStream(account, 'large', { direction, ...options })) read.push(event);
      const wanted = all.filter((n) => n >= (options.from ?? 1) && n <= (options.to ?? 99));
      const sorted = direction === 'forward' ? wanted : wanted.toReversed();
      expect(numbers(read)).toEqual(sorted.slice(0, options.limit ?? 99));
    }
});
