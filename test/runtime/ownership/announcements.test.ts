import { afterAll, expect, test } from 'vitest';
import { createRebalancer, type Standing } from '../../../src/runtime/ownership/rebalancer.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';

const { db } = await databaseOfFile();

/** A process, with the announcements that it was sent. */
function processNamed(name: string) {
  const sent: unknown[] = [];
  const counted: Queryable = {
    async query<Row extends object>(statement: Parameters<Queryable['query']>[0]) {
      const rows = await db.query<Row>(statement);
      for (const row of rows) if ('announced' in row && row.announced !== null) sent.push(row.announced);
      return rows;
    },
  };
  const described = { name, role: 'all', versions: [], payloadVersions: {}, reactorVersions: {} } as const;
  const rebalancer = createRebalancer(counted, described);
  leaving.push(rebalancer.leave);
  return { sent, ...rebalancer };
}

const leaving: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(leaving.map((leave) => leave())));

const standing = (owns: readonly string[]): Standing => ({
  declares: ['processor a@1/0', 'processor b@1/0'],
  owns,
  keeps: [],
});

test('what a process announces is sent to another one once, until it announces something else', async () => {
  const [first, second] = [processNamed('first'), processNamed('second')];
  await first.next(standing(['processor a@1/0', 'processor b@1/0']));
  const { release } = await second.next(standing([]));
  expect(release).toEqual([]);
  expect(second.sent).toHaveLength(1);
  for (let time = 0; time < 3; time++) {
    await first.next(standing(['processor a@1/0', 'processor b@1/0']));
    await second.next(standing([]));
  }
  expect(second.sent).toHaveLength(1);
  await first.announce(standing(['processor a@1/0']));
  const { take } = await second.next(standing([]));
  expect(second.sent).toHaveLength(2);
  expect(take).toEqual(['processor b@1/0']);
  expect(await second.others(standing([]))).toMatchObject([{ owns: ['processor a@1/0'] }]);
});

test('of equal assignments of many processes, only the first is computed', async () => {
  const [first, second] = [processNamed('third'), processNamed('fourth')];
  await first.next(standing(['processor a@1/0']));
  const before = await second.next(standing(['processor b@1/0']));
  const again = await second.next(standing(['processor b@1/0']));
  expect(again).toBe(before);
  await first.announce(standing([]));
  expect(await second.next(standing(['processor b@1/0']))).not.toBe(before);
});
