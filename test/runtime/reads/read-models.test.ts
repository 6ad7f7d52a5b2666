import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { globalPosition } from '../../../src/events/global-position.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { storedIn } from '../../../src/projections/projection/projection.ts';
import type { PageQuery } from '../../../src/projections/queries/row-query.ts';
import type { TableView } from '../../../src/runtime/reads/follow-tables.ts';
import { createPositions, type Positions } from '../../../src/runtime/reads/positions.ts';
import { createReadModels, type ReadModelSource } from '../../../src/runtime/reads/read-models.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications, type Notifications } from '../../../src/store/postgres/notifications.ts';
import { readReplayedCheckpoint } from '../../../src/store/server/replica-state.ts';
import { shelfPlaces } from '../../store/queries/order-book.ts';
import { createReadModelWriter, type ReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { outdatedView, tableView } from '../../support/table-view.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let testDatabase: TestDatabase;
let db: Database;
let reads: Database;
let notifications: Notifications;
let positions: Positions;
let source: ReadModelSource;
let writer: ReadModelWriter;
let statements: string[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url });
  const pool = createDatabase({ url: testDatabase.url, maxConnections: 3 });
  reads = {
    ...pool,
    query(statement) {
      statements.push(statement.text);
      return pool.query(statement);
    },
  };
  notifications = createNotifications({ url: testDatabase.url });
  positions = createPositions({ db, notifications, timeout: 300_000, head: async () => globalPosition(0n) });
  source = reading(tableView());
  writer = await createReadModelWriter(db, shelfPlaces);
  await writer.write({ upserted: Array.from({ length: 20 }, (_, index) => place(index, 'first')) });
});

beforeEach(() => {
  statements = [];
});

afterAll(async () => {
  positions.close();
  await notifications.close();
  await reads.close();
  await db.close();
  await testDatabase.drop();
});

function reading(versions: TableView): ReadModelSource {
  const history = async () => [];
  return createReadModels({ db: reads, readSchema, statementTimeout: 10_000, positions, versions, history });
}

const page: PageQuery = {
  where: null,
  orderBy: [],
  columns: ['label'],
  direction: 'forward',
  limit: 100,
  after: null,
  before: null,
};

function place(shelf: number, label: string): Row {
  return { shop: 'a', shelf, day: '2026-01-31', label, units: 1 };
}

function keyOf(shelf: number) {
  return ['a', shelf, '2026-01-31'];
}

function labels(rows: readonly (Row | null)[]): unknown[] {
  return rows.map((row) => row?.label);
}

test('all reads of an operation with a snapshot see one state', async () => {
  const operation = source.open({ snapshot: true });
  await writer.write({ upserted: [place(1, 'before')] });
  const first = await operation.findPage(shelfPlaces, page);
  await writer.write({ upserted: [place(1, 'after'), place(99, 'after')] });
  expect(await operation.findPage(shelfPlaces, page)).toEqual(first);
  expect(labels(await operation.findByKeys(shelfPlaces, [keyOf(1), keyOf(99)], ['label']))).toEqual([
    'before',
    undefined,
  ]);
  expect(await operation.count(shelfPlaces, null)).toBe(20);
  await operation.close();
  await writer.write({ deleted: [keyOf(99)] });
});

test('each read without a snapshot sees the newest state', async () => {
  const operation = source.open({ snapshot: false });
  await writer.write({ upserted: [place(2, 'one')] });
  expect(labels(await operation.findByKeys(shelfPlaces, [keyOf(2)], ['label']))).toEqual(['one']);
  await writer.write({ upserted: [place(2, 'two')] });
  expect(labels(await operation.findByKeys(shelfPlaces, [keyOf(2)], ['label']))).toEqual(['two']);
  await operation.close();
});

test('lookups by key of concurrent operations share a statement', async () => {
  const operations = Array.from({ length: 20 }, () => source.open({ snapshot: false }));
  const found = await Promise.all(
    operations.map((operation, index) =>
      operation.findByKeys(shelfPlaces, [keyOf(index)], index % 2 === 0 ? ['units', 'label'] : ['label', 'units']),
    ),
  );
  expect(found.map(([row]) => row?.shelf)).toEqual(operations.map((_, index) => index));
  expect(statements).toHaveLength(1);
});

test('lookups by a unique column of concurrent operations share a statement, too', async () => {
  const operations = Array.from({ length: 20 }, () => source.open({ snapshot: false }));
  const found = await Promise.all(
    operations.map((operation, index) => operation.findByUnique(shelfPlaces, ['shelf'], [index + 1], ['label'])),
  );
  // There are twenty, from 0 on.
  expect(found.map((row) => row?.shelf ?? null)).toEqual(
    [...operations.keys()].map((index) => (index < 19 ? index + 1 : null)),
  );
  expect(statements).toHaveLength(1);
});

test('an impossible key fails only its own operation', async () => {
  const [bad, good] = await Promise.allSettled([
    source.open({ snapshot: false }).findByKeys(shelfPlaces, [['a', 1, 'no day']], ['label']),
    source.open({ snapshot: false }).findByKeys(shelfPlaces, [keyOf(3)], ['label']),
  ]);
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'BAD_USER_INPUT' } });
  expect(good).toMatchObject({ status: 'fulfilled', value: [{ label: 'first' }] });
});

test('after a wait, reads include the position, even if the snapshot was older', async () => {
  const operation = source.open({ snapshot: true });
  await operation.findPage(shelfPlaces, page);
  const position = await writer.write({ upserted: [place(4, 'waited for')] });
  await operation.waitFor(shelfPlaces, position);
  expect(labels(await operation.findByKeys(shelfPlaces, [keyOf(4)], ['label']))).toEqual(['waited for']);
  await operation.close();
});

test('a snapshot that includes the position stays the one that the operation began with', async () => {
  const operation = source.open({ snapshot: true });
  const first = await operation.findPage(shelfPlaces, page);
  const included = writer.checkpoint;
  await writer.write({ upserted: [place(5, 'too late')] });
  await operation.waitFor(shelfPlaces, included);
  expect(await operation.findPage(shelfPlaces, page)).toEqual(first);
  await operation.close();
});

test('closing during reads lets them end and returns every connection', async () => {
  for (let round = 0; round < 20; round++) {
    const operation = source.open({ snapshot: true });
    const running = [operation.findPage(shelfPlaces, page), operation.count(shelfPlaces, null)];
    if (round % 2 === 0) await running[0];
    const late = operation.findByKeys(shelfPlaces, [keyOf(1)], ['label']);
    const settled = Promise.allSettled([...running, late, operation.waitFor(shelfPlaces, globalPosition(10n ** 9n))]);
    await operation.close();
    await settled;
    await expect(operation.count(shelfPlaces, null)).rejects.toThrow('ended');
  }
  expect(reads.pool.idleCount).toBe(reads.pool.totalCount);
  expect(reads.pool.waitingCount).toBe(0);
});

test('an operation that reads nothing takes no connection', async () => {
  const before = reads.pool.totalCount;
  const operations = Array.from({ length: 10 }, () => source.open({ snapshot: true }));
  await Promise.all(operations.map((operation) => operation.close()));
  expect(reads.pool.totalCount).toBe(before);
});

test('a failed statement reaches its reader as a database error, and the connection is returned', async () => {
  const operation = createReadModels({
    db: reads,
    readSchema: 'nowhere',
    statementTimeout: 10_000,
    positions,
    versions: tableView(),
    history: async () => [],
  }).open({
    snapshot: true,
  });
  await expect(operation.findPage(shelfPlaces, page)).rejects.toMatchObject({ code: 'DATABASE_ERROR' });
  await operation.close();
  expect(reads.pool.idleCount).toBe(reads.pool.totalCount);
});

const formerly = storedIn(shelfPlaces, 'the_table_before');

test.each([
  true,
  false,
])('a wait for a version whose table is replaced meanwhile continues with the new table, with a snapshot: %s', async (snapshot) => {
  const { position } = await positions.progress(shelfPlaces);
  const operation = reading(outdatedView([formerly], shelfPlaces)).open({ snapshot });
  await operation.waitFor(formerly, position);
  expect(labels(await operation.findByKeys(formerly, [keyOf(7)], ['label']))).toEqual(['first']);
  expect(operation.lost).toBe(false);
  await operation.close();
});

test('a snapshot from before the rebuild is left when a wait continues with the new table', async () => {
  const { name } = shelfPlaces;
  const moveTo = (tableName: string) =>
    db.query({ text: 'update refold.projections set table_name = $2 where name = $1', values: [name, tableName] });
  await db.query({
    text: `create table ${readSchema}.the_table_before as table ${readSchema}.${shelfPlaces.tableName}`,
  });
  await moveTo('the_table_before');
  const operation = reading(outdatedView([formerly], shelfPlaces)).open({ snapshot: true });
  expect(labels(await operation.findByKeys(formerly, [keyOf(6)], ['label']))).toEqual(['first']);
  await writer.write({ upserted: [place(6, 'rebuilt')] });
  await moveTo(shelfPlaces.tableName);
  await operation.waitFor(formerly, globalPosition(1n));
  expect(labels(await operation.findByKeys(formerly, [keyOf(6)], ['label']))).toEqual(['rebuilt']);
  await operation.close();
  await db.query({ text: `drop table ${readSchema}.the_table_before` });
});

test('a wait for a version that is rebuilt in place meanwhile fails and says so', async () => {
  const { position } = await positions.progress(shelfPlaces);
  const view = { ...outdatedView([formerly], shelfPlaces), stateOf: () => 'building' as const };
  const operation = reading(view).open({ snapshot: true });
  await expect(operation.waitFor(formerly, position)).rejects.toMatchObject({
    code: 'PROJECTION_NOT_READY',
    message: `${shelfPlaces.id} got another table while this waited for position ${position}. Ask again.`,
  });
  await operation.close();
});

test('a read whose table is gone is repeated with the new table', async () => {
  const operation = reading(outdatedView([formerly], shelfPlaces)).open({ snapshot: false });
  const both = await Promise.all([
    operation.findByKeys(formerly, [keyOf(7)], ['label']),
    operation.count(formerly, null, 3),
  ]);
  expect(both).toEqual([[expect.objectContaining({ label: 'first' })], 3]);
  expect(operation.lost).toBe(false);
  await operation.close();
});

test('a snapshot whose table is gone is lost as a whole, and new reads use the new table', async () => {
  const outdated = reading(outdatedView([formerly], shelfPlaces));
  const operation = outdated.open({ snapshot: true });
  // Whichever fails first, a response of it is not sent before the operation is known to be lost.
  const wasLost = await Promise.all([
    operation.count(formerly, null, 3).catch(() => operation.lost),
    operation.findByKeys(formerly, [keyOf(7)], ['label']).catch(() => operation.lost),
  ]);
  expect(wasLost).toEqual([true, true]);
  await operation.close();
  const again = outdated.open({ snapshot: true });
  expect(await again.count(formerly, null, 3)).toBe(3);
  await again.close();
});

test.each([
  true,
  false,
])('a read of a table that is missing and was not replaced fails after one question, with a snapshot: %s', async (snapshot) => {
  let asked = 0;
  const refresh = async () => void asked++;
  const operation = reading({ ...tableView(formerly), refresh }).open({ snapshot });
  await expect(operation.count(formerly, null)).rejects.toMatchObject({ fields: { sqlState: '42P01' } });
  expect({ asked, lost: operation.lost }).toEqual({ asked: 1, lost: false });
  await operation.close();
});

test.each([
  true,
  false,
])('an outdated known position of a version that went back does not end a wait, with a snapshot: %s', async (snapshot) => {
  const head = async () => globalPosition(0n);
  // Nothing is written, so any timeout is reached.
  const beliefs = createPositions({ db, notifications, timeout: 1, head });
  const later = globalPosition(writer.checkpoint + 100n);
  beliefs.reached(shelfPlaces, { partition: 0, partitions: 1, checkpoint: later });
  const believing = createReadModels({
    db: reads,
    readSchema,
    statementTimeout: 10_000,
    positions: beliefs,
    versions: tableView(),
    history: async () => [],
  });
  const operation = believing.open({ snapshot });
  await expect(operation.waitFor(shelfPlaces, later)).rejects.toMatchObject({ code: 'POSITION_TIMEOUT' });
  await operation.close();
  beliefs.close();
});

test('a replica with another table for the version does not count for the position', async () => {
  expect(await readReplayedCheckpoint(reads, shelfPlaces)).toEqual({ checkpoint: writer.checkpoint, leavesOut: false });
  expect(await readReplayedCheckpoint(reads, storedIn(shelfPlaces, 'the_table_before'))).toBeNull();
});
