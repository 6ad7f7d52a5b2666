import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { account, balanceV1, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1, openingsV1],
      database: { url: database.url },
      gateway: { port: 0 },
      runtime: { audit: { everySeconds: 1, oneOf: 1 } },
    }),
  );
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

/** Value by `name{labels}`. */
async function scrape(): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${refold.url}/metrics`)).text();
  return new Map(
    [...text.matchAll(/^(refold_[a-z_]+\{projection[^}]*\}) (\S+)$/gm)].map(([, name, value]) => [
      String(name),
      Number(value),
    ]),
  );
}

test('the metrics show the position of every version, its folded events, and the results of audits', async () => {
  for (const id of ['a', 'b']) {
    await refold.log.append({ family: account, streamId: id, events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  }
  const balance = '{projection="balance",version="1"}';
  await until(async () => (await scrape()).get(`refold_events_folded_total${balance}`) === 2);
  const metrics = await scrape();
  for (const zero of [
    'lag_events',
    'lag_positions',
    'lag_seconds',
    'processor_stopped',
    'dead_letters',
    'version_held',
  ]) {
    expect([zero, metrics.get(`refold_${zero}${balance}`)]).toEqual([zero, 0]);
  }
  expect(metrics.get(`refold_version_active${balance}`)).toBe(1);
  expect(metrics.get('refold_version_active{projection="openings",version="1"}')).toBe(1);

  await until(async () => ((await scrape()).get(`refold_audit_rows_total${balance}`) ?? 0) >= 2);
  expect((await scrape()).get(`refold_audit_differences_total${balance}`)).toBe(0);
  const db = createDatabase({ url: database.url });
  await db.query({ text: `update read_models.balance_v1 set owner = 'Eve' where account_id = 'a'` });
  await db.close();
  await until(async () => ((await scrape()).get(`refold_audit_differences_total${balance}`) ?? 0) >= 1);
});

test('the metrics name the session that holds the log back, and by how much', async () => {
  const lines = async () => (await (await fetch(`${refold.url}/metrics`)).text()).split('\n');
  expect(await lines()).toContain('refold_horizon_lag_positions 0');
  const slow = createDatabase({ url: database.url, applicationName: 'slow-writer' });
  await slow.transaction(async (tx) => {
    await tx.query({
      text: `insert into refold.events (family, stream_id, stream_position, type, payload)
        values ('account', 'slow', 1, 'Opened', '{"owner":"Ada"}')`,
    });
    for (const streamId of ['c', 'd'])
      await refold.log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
    const held = await until(async () =>
      (await lines()).find((line) => line.startsWith('refold_horizon_holder_seconds{application_name="slow-writer"} ')),
    );
    expect(Number(held.split(' ')[1])).toBeGreaterThan(1);
    expect(await lines()).toContain('refold_horizon_lag_positions 3');
  });
  await until(async () => (await lines()).includes('refold_horizon_lag_positions 0'));
  await slow.close();
});
