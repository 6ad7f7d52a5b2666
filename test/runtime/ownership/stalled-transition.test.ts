import { afterAll, expect, test } from 'vitest';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';

const { database, db, log } = await databaseOfFile(account);
const operator = createDatabase({ url: database.superuserUrl });
const workers = createWorkerProcesses();
afterAll(async () => {
  await workers.killAll();
  await operator.close();
});

const start = (owner: string) => workers.start({ url: database.url, owner, runtime: { leaseSeconds: 2 } });

async function owners(): Promise<(string | null)[]> {
  return (await readRegistry(db)).map(({ owner }) => owner);
}

test('a worker that stalls in the middle of an activation does not keep the next owner from it', async () => {
  await traffic(log, 100, seeded(1));
  const first = await start('first');
  await until(async () => (await readRegistry(db)).every(({ state }) => state === 'active'));
  await first.end('SIGKILL');
  await operator.query({ text: `update refold.projections set state = 'building'` });

  const stalled = await operator.transaction(async (tx) => {
    // Each activation waits here, after it has locked its version and its processor.
    await tx.query({ text: 'lock table refold.transitions in exclusive mode' });
    const second = await start('second');
    await until(async () => {
      const waiting = await db.query({
        text: `select from pg_locks where relation = 'refold.transitions'::regclass and not granted`,
      });
      return waiting.length >= 3;
    });
    second.signal('SIGSTOP');
    return second;
  });
  await start('third');
  await until(async () => (await owners()).every((owner) => owner === 'third'));
  await until(async () => (await readRegistry(db)).every(({ state }) => state === 'active'));
  stalled.signal('SIGCONT');
  await stalled.end('SIGTERM');
  expect(await owners()).toEqual(['third', 'third', 'third']);
});
