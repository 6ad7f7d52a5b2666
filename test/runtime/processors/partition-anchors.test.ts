import { afterAll, beforeEach, expect, test } from 'vitest';
import { type GlobalPosition, globalPosition } from '../../../src/events/global-position.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import {
  advanceCheckpoint,
  claimProcessor,
  forgetCheckpoint,
  type ProcessorClaim,
} from '../../../src/store/processors/checkpoints.ts';
import { changePartitions } from '../../../src/store/processors/partitions.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

// A version of two partitions in a read store, whose number of partitions changes after the log has lost events.
const databases: TestDatabase[] = [];
const pools: Database[] = [];
let ofLog: TestDatabase;
let log: EventLog;
let store: Database;

beforeEach(async () => {
  ofLog = await createTestDatabase();
  const ofStore = await createTestDatabase();
  databases.push(ofLog, ofStore);
  const logDb = createDatabase({ url: ofLog.url });
  store = createDatabase({
    url: ofStore.url,
    elsewhere: { log: logDb, storesOf: () => [], others: () => [], placement: undefined },
  });
  pools.push(logDb, store);
  log = createEventLog(logDb, [account]);
  await insertVersions(store, {
    name: 'balance',
    version: 1,
    tableSchema: 'read_models',
    tableName: balanceV1.tableName,
    tableFingerprint: '',
    codeFingerprint: '',
    partitions: 2,
    definition: { columns: [], keyColumns: [], filter: [], graphql: balanceV1.graphql },
  });
});
afterAll(async () => {
  for (const pool of pools) await pool.close();
  for (const database of databases) await database.drop();
});

async function append(count: number): Promise<GlobalPosition> {
  const events = Array.from({ length: count }, () => ({ type: 'Opened', payload: { owner: 'ada' } }) as const);
  const { position } = await log.append({ family: account, streamId: crypto.randomUUID(), events });
  return position;
}

const claim = (partition: number) =>
  claimProcessor(store, { kind: 'processor', name: 'balance', version: 1, partition }, 'test');

async function advance(of: ProcessorClaim, to: GlobalPosition): Promise<void> {
  await advanceCheckpoint(store, { claim: of, from: of.checkpoint, to, events: 0, rows: 0, busyMs: 0 });
}

/** What the new owners find. */
async function lostAfterChange(partitions: number): Promise<(string | null)[]> {
  await store.transaction((tx) => changePartitions(tx, 'balance', 1, partitions));
  const claims = await Promise.all(Array.from({ length: partitions }, (_, partition) => claim(partition)));
  return claims.map(({ lost }) => lost);
}

test('partitions continue where the former ones were', async () => {
  await advance(await claim(0), await append(3));
  await advance(await claim(1), await append(2));
  expect(await lostAfterChange(3)).toEqual([null, null, null]);
});

test('a version that stopped because of lost events stays stopped', async () => {
  await advance(await claim(0), await append(3));
  await forgetCheckpoint(store, await claim(1));
  expect(await lostAfterChange(3)).toEqual(['other', 'other', 'other']);
});

test('lost events that only some of the former partitions had taken in are noticed', async () => {
  await advance(await claim(0), await append(3));
  const last = await append(2);
  await advance(await claim(1), last);
  await ofLog.administer(`
    set session_replication_role = replica;
    delete from refold.events where position >= ${globalPosition(last - 1n)}`);
  expect(await lostAfterChange(3)).toEqual(['other', 'other', 'other']);
  expect(await lostAfterChange(1)).toEqual(['other']);
});
