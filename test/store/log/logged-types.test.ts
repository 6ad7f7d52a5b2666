import { expect, test } from 'vitest';
import { readLoggedTypes } from '../../../src/store/log/logged-types.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';

const { db } = await databaseOfFile();

/** Appends events of one type to streams of one event each. */
async function append(family: string, type: string, count: number, recordedAt = '2026-01-01Z'): Promise<void> {
  await db.query({
    text: `
      with stream as (
        insert into refold.streams (family, stream_id, version)
        select $1, gen_random_uuid()::text, 1 from generate_series(1, $3)
        returning stream_id
      )
      insert into refold.events (family, stream_id, stream_position, type, payload, recorded_at)
      select $1, stream_id, 1, $2, '{}', $4 from stream`,
    values: [family, type, count, recordedAt],
  });
}

test('the event types of a log are found, also those that are only in the middle of a long one', async () => {
  expect(await readLoggedTypes(db)).toEqual([]);
  await append('order', 'Placed', 15_000);
  await append('order', 'Renamed', 300);
  await append('visit', 'Seen', 1);
  await append('order', 'Placed', 15_000, '2026-02-01Z');
  await append('order', 'Shipped', 1, '2026-03-01Z');
  const early = [
    { family: 'order', type: 'Placed' },
    { family: 'order', type: 'Renamed' },
    { family: 'visit', type: 'Seen' },
  ];
  expect(await readLoggedTypes(db, '2026-02-01Z')).toEqual(early);
  expect(await readLoggedTypes(db)).toEqual([...early.slice(0, 2), { family: 'order', type: 'Shipped' }, early[2]]);
});
