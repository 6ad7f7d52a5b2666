import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { createRebalancer, type Standing } from '../../../src/runtime/ownership/rebalancer.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { until } from '../../support/until.ts';

const { db } = await databaseOfFile();

/** A process, with its statements, the announcements that it was sent, and what the next statement of a name waits for. */
function processNamed(name: string) {
  const sent: unknown[] = [];
  const statements: (string | undefined)[] = [];
  const delayed = new Map<string, Promise<void>>();
  const counted: Queryable = {
    async query<Row extends object>(statement: Parameters<Queryable['query']>[0]) {
      statements.push(statement.name);
      const delay = delayed.get(statement.name ?? '');
      delayed.delete(statement.name ?? '');
      await delay;
      const rows = await db.query<Row>(statement);
      for (const row of rows) if ('standing' in row) sent.push(row);
      return rows;
    },
  };
  const described = {
    id: randomUUID(),
    name,
    role: 'all',
    versions: [],
    payloadVersions: {},
    reactorVersions: {},
  } as const;
  const rebalancer = createRebalancer(counted, described);
  leaving.push(rebalancer.leave);
  return { sent, statements, delayed, ...rebalancer };
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

test('a process that was taken for gone announces itself again with its next heartbeat', async () => {
  const [first, second] = [processNamed('fifth'), processNamed('sixth')];
  const owns = ['processor a@1/0', 'processor b@1/0'];
  await first.next(standing(owns));
  await second.next(standing([]));
  await db.query({ text: `delete from refold.processes where name = 'fifth'` });
  expect(await second.others(standing([]))).not.toContainEqual(expect.objectContaining({ owns }));
  await first.next(standing(owns));
  expect(await second.others(standing([]))).toContainEqual(expect.objectContaining({ owns }));
});

test('a process that announces nothing new sends one statement for each heartbeat, without its units', async () => {
  const process = processNamed('seventh');
  const units = standing(['processor a@1/0']);
  await process.next(units);
  process.statements.length = 0;
  for (let time = 0; time < 3; time++) await process.next(units);
  expect(process.statements).toEqual(['exchange heartbeats', 'exchange heartbeats', 'exchange heartbeats']);
});

test('a process that changes its announcement while another one is being read is not missed', async () => {
  const [first, second, third] = [processNamed('eighth'), processNamed('ninth'), processNamed('tenth')];
  await first.announce(standing(['processor eighth@1/0']));
  await second.next(standing([]));
  await third.announce(standing([]));
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  second.delayed.set('read announcements', released);
  const heard = second.others(standing([]));
  await until(() => second.statements.at(-1) === 'read announcements');
  await first.announce(standing(['processor eighth@2/0']));
  const next = second.next(standing([]));
  await Promise.race([next, pause(300)]); // it takes its turn after the other
  release();
  expect(await heard).toContainEqual(expect.objectContaining({ owns: [expect.stringMatching('eighth')] }));
  await next;
});
