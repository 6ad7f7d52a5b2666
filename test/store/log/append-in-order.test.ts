import { expect, test } from 'vitest';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account, deposited } from './families.ts';

const { db, log } = await databaseOfFile(account);

const toAccount = (streamId: string, key: string, ...amounts: number[]) => ({
  family: account,
  streamId,
  events: amounts.map(deposited),
  idempotencyKey: key,
});

test('appends sent in order keep that order in the log, across streams, and each is refused or written separately', async () => {
  const verdicts = await log.appendInOrder([
    toAccount('b', 'k1', 1, 2, 3),
    toAccount('a', 'k2', 4),
    { ...toAccount('a', 'k3', 5), expectedVersion: 7 },
    toAccount('c', 'k4', 0.5),
    toAccount('b', 'k5', 6),
    toAccount('a', 'k2', 7),
  ]);
  expect(verdicts).toEqual([
    { kind: 'written' },
    { kind: 'written' },
    { kind: 'refused', error: expect.objectContaining({ code: 'CONCURRENCY_CONFLICT', actual: 1 }) },
    { kind: 'refused', error: expect.objectContaining({ code: 'INVALID_PAYLOAD' }) },
    { kind: 'written' },
    { kind: 'duplicate' },
  ]);
  const written = await db.query({
    text: `select stream_id, stream_position, (payload ->> 'amount')::int as amount
      from refold.events
      order by position`,
  });
  expect(written).toEqual(
    [
      ['b', 1n, 1],
      ['b', 2n, 2],
      ['b', 3n, 3],
      ['a', 1n, 4],
      ['b', 4n, 6],
    ].map(([stream_id, stream_position, amount]) => ({ stream_id, stream_position, amount })),
  );
});

test('no statement is sent if every append is refused before it', async () => {
  expect(await log.appendInOrder([toAccount('d', 'k9', 0.5)])).toMatchObject([{ kind: 'refused' }]);
  expect(await log.appendInOrder([])).toEqual([]);
});
