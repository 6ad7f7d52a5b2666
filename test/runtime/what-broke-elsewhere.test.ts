/** Failures known from systems of this kind that no other test covers; docs/guarantees.md has the whole list. */
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { defineConfig, type Projection } from '../../src/index.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { seeded } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { settingOfEachTest } from '../support/runtime-setting.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses } from '../support/worker-processes.ts';

const projections: readonly Projection[] = [balanceV1, balanceV2, openingsV1];
const step = { actor: 'ann', reason: 'once more' };

const setting = settingOfEachTest();
const workers = createWorkerProcesses();

afterEach(() => workers.killAll());

function start(maintain = true): Promise<Runtime> {
  return setting.start(defineConfig({ projections, runtime: { pageSize: 10 } }), { maintain });
}

async function open({ log }: Runtime, count: number, from = 0): Promise<void> {
  for (let id = from; id < from + count; id++) {
    await log.append({
      family: account,
      streamId: `account-${id % 7}`,
      events: [id < 7 ? { type: 'Opened', payload: { owner: 'Ada' } } : { type: 'Credited', payload: { amount: '1' } }],
    });
  }
}

async function expectFolds(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).every(
      ({ position, state, rebuild }) => position >= horizon && state === 'active' && rebuild === null,
    ),
  );
  await runtime.versions.refresh();
  for (const projection of projections) {
    const stored = runtime.versions.stored(projection);
    expect(await storedTable(runtime.db, stored), projection.id).toEqual(await foldedTable(runtime.log, projection));
  }
}

test('transactions that commit in another order than they began lose no event, and the order stays', async () => {
  const runtime = await start();
  const random = seeded(7);
  await open(runtime, 7);
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let n = 0; n < 20; n++) {
        const begun = Promise.withResolvers<bigint>();
        const committed = runtime.db.transaction(async (tx) => {
          const { position } = await runtime.log.append(
            {
              family: account,
              streamId: `account-${writer % 7}`,
              events: [{ type: 'Credited', payload: { amount: '1' } }],
            },
            tx,
          );
          begun.resolve(position);
          // Waits until others have drawn some positions: they commit first.
          const later = position + BigInt(Math.floor(random() * 6));
          let looks = 0;
          await until(async () => (await runtime.log.head()) >= later || looks++ > 10);
        });
        await Promise.all([begun.promise, committed]);
      }
    }),
  );
  await expectFolds(runtime);
  expect(await runtime.log.head()).toBe(167n);
});

test('a rebuild that is requested a second time processes all events again', async () => {
  const runtime = await start();
  await open(runtime, 21);
  await expectFolds(runtime);
  for (const table of ['balance_v1_g2', 'balance_v1_g3']) {
    await requestRebuild(runtime.db, balanceV1, 'read_models', step);
    await until(() => runtime.versions.stored(balanceV1).tableName === table);
    await expectFolds(runtime);
  }
});

test('an append that spans the end of a rebuild is in the new table', async () => {
  const runtime = await start();
  await open(runtime, 21);
  await expectFolds(runtime);
  await runtime.db.transaction(async (tx) => {
    await runtime.log.append(
      { family: account, streamId: 'account-1', events: [{ type: 'Credited', payload: { amount: '99' } }] },
      tx,
    );
    await requestRebuild(runtime.db, balanceV1, 'read_models', step);
    await until(() => runtime.versions.stored(balanceV1).tableName === 'balance_v1_g2');
  });
  await expectFolds(runtime);
  const [row] = await runtime.db.query<{ amount: string }>({
    text: `select amount from read_models.balance where account_id = 'account-1'`,
  });
  expect(row).toEqual({ amount: '101.00' });
});

test('an owner that was idle for longer than its lease is still the only owner', async () => {
  const runtime = await start(false);
  const lease = { ownership: 'lease', leaseSeconds: 2 } as const;
  await workers.start({ url: setting.database.url, owner: 'first', runtime: lease });
  await until(async () => (await readRegistry(runtime.db)).every(({ owner }) => owner === 'first'));
  await workers.start({ url: setting.database.url, owner: 'second', runtime: lease });
  const [idle] = await runtime.db.query<{ since: string }>({ text: 'select now() as since' });
  await until(
    async () =>
      (
        await runtime.db.query({
          text: `select where now() > $1::timestamptz + interval '2.5 seconds'`,
          values: [idle?.since],
        })
      ).length > 0,
  );
  await open(runtime, 21);
  await expectFolds(runtime);
  for (const { name, version, eventsFolded } of await readRegistry(runtime.db))
    expect({ name, version, eventsFolded }).toEqual({ name, version, eventsFolded: name === 'openings' ? 7n : 21n });
});

test('an owner that was killed and is restarted at once continues at once', async () => {
  const runtime = await start(false);
  const first = await workers.start({ url: setting.database.url, owner: 'worker' });
  await open(runtime, 21);
  await expectFolds(runtime);
  await first.end('SIGKILL');
  await workers.start({ url: setting.database.url, owner: 'worker, again' });
  await open(runtime, 21, 21);
  await expectFolds(runtime);
  expect(new Set((await readRegistry(runtime.db)).map(({ owner }) => owner))).toEqual(new Set(['worker, again']));
});

test('open write transactions, of this database and of another, delay no read table', async () => {
  const runtime = await start();
  const other = await createTestDatabase();
  const holders = [setting.database.url, other.url].map((url) => new pg.Client({ connectionString: url }));
  for (const holder of holders) {
    await holder.connect();
    await holder.query('begin');
    await holder.query('create table scratch (id int)');
    await holder.query('insert into scratch values (1)');
  }
  await open(runtime, 21);
  await expectFolds(runtime);
  for (const holder of holders) await holder.end();
  await other.drop();
});

test('the first of two appends in one transaction is rolled back when the second is refused', async () => {
  const runtime = await start();
  await open(runtime, 21);
  const both = runtime.db.transaction(async (tx) => {
    const events = [{ type: 'Credited', payload: { amount: '1' } }] as const;
    await runtime.log.append({ family: account, streamId: 'account-1', events }, tx);
    await runtime.log.append({ family: account, streamId: 'account-2', events, expectedVersion: 99 }, tx);
  });
  await expect(both).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT' });
  expect(await runtime.log.streamVersion(account, 'account-1')).toBe(3);
  await expectFolds(runtime);
});
