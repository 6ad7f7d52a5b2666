import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { GlobalPosition } from '../../../src/index.ts';
import { createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor, type ProcessorClaim } from '../../../src/store/processors/checkpoints.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const { name, version, tableName } = balanceV1;
const unit = { kind: 'processor', name, version, partition: 0 } as const;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
  await createReadSchema(db, 'read_models');
  await createReadTable(balanceV1, 'read_models').create(db);
  await insertVersions(db, {
    name,
    version,
    tableSchema: 'read_models',
    tableName,
    tableFingerprint: '',
    codeFingerprint: '',
    partitions: 1,
    definition: { columns: [], keyColumns: [], filter: [], graphql: balanceV1.graphql },
  });
});

afterEach(async () => {
  await db.close();
  await database.drop();
});

/** What an owner does with all events after its checkpoint, and which statements it sends. */
async function goOn(claim: ProcessorClaim) {
  const asked = { statements: 0, transactions: 0 };
  const processor = createProjectionProcessor({
    db: {
      ...db,
      query(statement) {
        asked.statements++;
        return db.query(statement);
      },
      transaction(work, options) {
        asked.transactions++;
        return db.transaction(work, options);
      },
    },
    log,
    readSchema: 'read_models',
    projection: balanceV1,
    claim,
    state: 'active',
    freeze: true,
    logger: pino({ level: 'silent' }),
    onCaughtUp: async () => 'active',
  });
  let after = claim.checkpoint;
  return {
    asked,
    async fold() {
      const horizon = await log.horizon();
      const page = await log.readAll({ after, upTo: horizon, filter: balanceV1.filter, limit: 100 });
      await processor.process({ after, upTo: page.upTo, events: page.events, horizon });
      after = page.upTo;
      return page.upTo;
    },
  };
}

const append = (streamId: string, ...events: readonly unknown[]) =>
  log.append({ family: account, streamId, events: events as never[] }); // of the sample domain
const opened = { type: 'Opened', payload: { owner: 'Ada' } };
const credited = { type: 'Credited', payload: { amount: '1.50' } };

const kept = async (position: GlobalPosition) =>
  db.query({ text: 'select upserted, deleted from refold.changes where checkpoint = $1', values: [position] });

test('a batch that sets rows is one statement: rows, checkpoint, run log and changes', async () => {
  await append('a', opened);
  const owner = await goOn(await claimProcessor(db, unit, 'owner'));
  await owner.fold();
  await append('a', credited);
  await append('b', opened, credited);
  const before = { ...owner.asked };
  const position = await owner.fold();
  expect(owner.asked.transactions).toBe(0);
  // The poll for new events comes before.
  expect(owner.asked.statements - before.statements).toBeLessThanOrEqual(2);
  expect(await storedTable(db, balanceV1)).toEqual(await foldedTable(log, balanceV1));
  expect(await kept(position)).toEqual([{ upserted: [['a'], ['b']], deleted: [] }]);
  expect(await readRegistry(db)).toMatchObject([{ checkpoint: position, eventsFolded: 4n }]);
  expect(await db.query({ text: 'select sum(rows)::int as rows from refold.runs' })).toEqual([{ rows: 3 }]);
});

test('a batch that removes a row continues from there', async () => {
  await append('a', opened);
  await append('b', opened);
  const owner = await goOn(await claimProcessor(db, unit, 'owner'));
  await owner.fold();
  await append('a', { type: 'Closed', payload: {} });
  await append('b', credited);
  const position = await owner.fold();
  expect(owner.asked.transactions).toBe(1);
  expect(await kept(position)).toEqual([{ upserted: [['b']], deleted: [['a']] }]);
  await append('a', opened);
  await owner.fold();
  expect(await storedTable(db, balanceV1)).toEqual(await foldedTable(log, balanceV1));
});

test('nothing in the statement of a former owner takes effect', async () => {
  await append('a', opened);
  const former = await goOn(await claimProcessor(db, unit, 'former'));
  const position = await former.fold();
  const before = await storedTable(db, balanceV1);
  await claimProcessor(db, unit, 'latter');
  await append('a', credited);
  await expect(former.fold()).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  expect(await storedTable(db, balanceV1)).toEqual(before);
  expect(await readRegistry(db)).toMatchObject([{ checkpoint: position, eventsFolded: 1n }]);
  expect(await db.query({ text: 'select from refold.changes where checkpoint > $1', values: [position] })).toEqual([]);
});

test('nothing takes effect either if the statement of a former owner waits for the new owner', async () => {
  await append('a', opened);
  const former = await goOn(await claimProcessor(db, unit, 'former'));
  await former.fold();
  await append('a', credited);
  let folding: Promise<unknown> | undefined;
  await db.transaction(async (tx) => {
    await claimProcessor(tx, unit, 'latter');
    folding = former.fold();
    folding.catch(() => {});
    await until(async () => {
      const waiting = await db.query({
        text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      });
      return waiting.length > 0;
    });
  });
  await expect(folding).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  const rows = await storedTable(db, balanceV1);
  expect([...rows.values()]).toMatchObject([{ movements: 0 }]);
});
