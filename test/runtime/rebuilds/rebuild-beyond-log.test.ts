import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig } from '../../../src/index.ts';
import { storedIn } from '../../../src/projections/projection/projection.ts';
import { completeRebuild } from '../../../src/runtime/rebuilds/complete-rebuild.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { inStore } from '../../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const readSchema = 'read_models';
const step = { actor: 'test', reason: 'to see' };

let ofLog: TestDatabase;
let ofStore: TestDatabase;
let logDb: Database;
let store: Database;

beforeAll(async () => {
  ofLog = await createTestDatabase();
  ofStore = await createTestDatabase();
  logDb = createDatabase({ url: ofLog.url });
  store = createDatabase({
    url: ofStore.url,
    elsewhere: { log: logDb, storesOf: () => [], others: () => [], placement: undefined },
  });
});
afterAll(async () => {
  await store.close();
  await logDb.close();
  await ofLog.drop();
  await ofStore.drop();
});

test('a rebuild in a read store does not take over at a position beyond the log, from which it would leave out events', async () => {
  const config = defineConfig({
    projections: [inStore(balanceV1)],
    database: { url: ofLog.url },
    readStores: { analytics: { url: ofStore.url } },
  });
  const app = await createRefold(config, { logger: pino({ level: 'silent' }), role: 'worker' });
  const events = [{ type: 'Opened', payload: { owner: 'ada' } } as const];
  await app.log.append({ family: account, streamId: 'a', events });
  await until(async () => (await app.status())[0]?.state === 'active');
  await app.stop();

  // As after a fail-over that lost events, before the next claim of the processor.
  await store.query({ text: `update refold.processors set checkpoint = checkpoint + 1000 where name = 'balance'` });
  await requestRebuild(store, inStore(balanceV1), readSchema, step);
  const [rebuild = expect.unreachable()] = await readRebuilds(store);
  const claim = await claimProcessor(store, { kind: 'rebuild', name: 'balance', version: 1, partition: 0 }, 'test');
  const complete = () =>
    completeRebuild({
      db: store,
      log: createEventLog(logDb, [account]),
      readSchema,
      projection: storedIn(inStore(balanceV1), rebuild.tableName),
      claim,
      progress: { checkpoint: claim.checkpoint, goal: claim.checkpoint, finish: async () => {} },
      actor: 'test',
      deadLettersAccepted: false,
    });
  await expect(complete()).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  await expect(complete()).rejects.toThrow('the log has lost an event');

  await store.query({ text: `update refold.processors set checkpoint = 0 where name = 'balance'` });
  await expect(complete()).resolves.toBe(true);
});
