import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { RefoldError } from '../../../src/errors.ts';
import { defineEvents } from '../../../src/events/event-family.ts';
import { globalPosition } from '../../../src/events/global-position.ts';
import { t } from '../../../src/projections/columns/column.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { defineProjection } from '../../../src/projections/declaration/define-projection.ts';
import { type Projection, storedIn } from '../../../src/projections/projection/projection.ts';
import { type ChangeCursor, cursorText, parseCursor } from '../../../src/projections/queries/change-cursor.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate } from '../../../src/schema/contract/change-feed.ts';
import { pruneChanges } from '../../../src/store/processors/changes.ts';
import { createReadModelWriter, type ReadModelWriter } from '../../support/read-model-writer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { createLiveSetting, type LiveSetting, pull } from './live-setting.ts';

let database: TestDatabase;
let setting: LiveSetting;
let stock: Projection;
let writer: ReadModelWriter;
let tests = 0;

const events = defineEvents('stock', { Counted: z.object({}) });

function stockVersion(version: number): Projection {
  return defineProjection({
    name: `stock_of_test_${tests}`,
    version,
    events,
    table: { item: t.text().primaryKey(), shelf: t.text().index(), units: t.integer() },
    key: (event) => event.streamId,
    evolve: { Counted: () => null },
  });
}

beforeAll(async () => {
  database = await createTestDatabase();
  setting = await createLiveSetting(async () => database);
});

beforeEach(async () => {
  tests++;
  stock = stockVersion(1);
  writer = await createReadModelWriter(setting.db, stock);
  setting.stage.serve(stock);
  setting.intercept = () => {};
});

afterAll(() => setting.close());

const row = (item: string, units: number, shelf = 'A'): Row => ({ item, shelf, units });
const columns = ['item', 'shelf', 'units'];

function feed(given: Partial<ChangeFeedQuery> & { readonly from?: string } = {}, live = setting.live) {
  const { from, ...query } = given;
  const since = from === undefined ? null : parseCursor(from);
  return live.changes(stock, { where: null, columns, snapshot: true, since, ...query }, { after: null });
}

/** A message in short form: `+` upserted, `-` deleted. */
function told({ cursor, reset, lagged, changes }: ChangeFeedUpdate): string {
  const words = changes.map(({ operation, key, row: now }) =>
    operation === 'UPSERT' ? `+${key}:${now?.units}` : `-${key}`,
  );
  const start = reset ? [lagged ?? 'reset'] : [];
  return [...start, ...words, cursor ? `to ${cursorText(cursor as ChangeCursor)}` : 'more'].join(' ');
}

const next = async (messages: AsyncIterator<ChangeFeedUpdate>) => told(await pull(messages));

test('a feed begins with all rows, then sends every change, in order', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 1)] });
  const messages = feed();
  expect(await next(messages)).toBe('reset +a:1 +b:1 to 1@1.1');
  await writer.write({ upserted: [row('c', 1)], deleted: [['a']] });
  expect(await next(messages)).toBe('+c:1 -a to 2@1.1');
  await writer.write({ upserted: [row('b', 2)] });
  expect(await pull(messages)).toEqual({
    position: 3n,
    cursor: { position: 3n, rows: { version: 1, generation: 1 } },
    reset: false,
    lagged: null,
    changes: [{ operation: 'UPSERT', key: ['b'], row: row('b', 2), position: 3n }],
  });
  await messages.return?.();
});

test('a client that reconnects gets what changed meanwhile, removed rows included, and nothing else', async () => {
  for (const units of [1, 2, 3]) await writer.write({ upserted: [row('a', units), row('b', units)] });
  await writer.write({ deleted: [['a']] });
  await writer.write({ upserted: [row('c', 1)] });
  const messages = feed({ from: '3@1.1' });
  expect(await next(messages)).toBe('-a +c:1 to 5@1.1');
  await writer.write({ upserted: [row('a', 9)] });
  expect(await next(messages)).toBe('+a:9 to 6@1.1');
  await messages.return?.();

  const again = feed({ from: '6@1.1' });
  expect(await next(again)).toBe('to 6@1.1');
  await again.return?.();
  const byPosition = feed({ from: '5' });
  expect(await next(byPosition)).toBe('+a:9 to 6@1.1');
  await byPosition.return?.();
});

test('a feed waits for a position that the read model has yet to reach', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = feed({ from: '3' });
  const first = next(messages);
  await writer.write({ upserted: [row('a', 2)] });
  await writer.write({ upserted: [row('a', 3)] });
  expect(await first).toBe('to 3@1.1');
  await messages.return?.();
});

test('a client that reconnects too late gets EXPIRED and all rows', async () => {
  for (const units of [1, 2, 3]) await writer.write({ upserted: [row('a', units)] });
  await setting.db.query({
    text: `update refold.changes set at = now() - interval '1 hour' where name = $1 and checkpoint <= 2`,
    values: [stock.name],
  });
  await pruneChanges(setting.db, stock, 15);
  const late = feed({ from: '1@1.1' });
  expect(await next(late)).toBe('EXPIRED +a:3 to 3@1.1');
  await late.return?.();
  const inTime = feed({ from: '2@1.1' });
  expect(await next(inTime)).toBe('+a:3 to 3@1.1');
  await inTime.return?.();
});

test('changes that were truncated away lead to all rows, for connected clients and for those that reconnect', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 1)] });
  const messages = feed();
  expect(await next(messages)).toBe('reset +a:1 +b:1 to 1@1.1');
  setting.intercept = () => {
    throw new RefoldError('DATABASE_UNAVAILABLE', 'down');
  };
  await writer.write({ upserted: [row('a', 2)] });
  await writer.write({ deleted: [['b']] });
  await database.administer('truncate refold.changes');
  setting.intercept = () => {};
  expect(await next(messages)).toBe('EXPIRED +a:2 to 3@1.1');
  await messages.return?.();
  const back = feed({ from: '2@1.1' });
  expect(await next(back)).toBe('EXPIRED +a:2 to 3@1.1');
  await back.return?.();
});

test.each([
  ['of another version', '1@2.1', 'REPLACED'],
  ['of rows that were rebuilt since', '1@1.7', 'REPLACED'],
  ['of another database', '99@1.1', 'AHEAD'],
])('a cursor %s leads to all rows', async (_, from, reason) => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = feed({ from });
  expect(await next(messages)).toBe(`${reason} +a:1 to 1@1.1`);
  await messages.return?.();
});

test('rows rebuilt in a new table, and the rows of another version, are sent whole in the same subscription', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = feed();
  expect(await next(messages)).toBe('reset +a:1 to 1@1.1');

  const rebuilt = storedIn(stock, `${stock.tableName}_g2`);
  await setting.db.query({
    text: `create table read_models.${rebuilt.tableName} (like read_models.${stock.tableName})`,
  });
  await setting.db.query({
    text: 'update refold.projections set table_name = $2, generation = 2 where name = $1',
    values: [stock.name, rebuilt.tableName],
  });
  setting.stage.serve(rebuilt);
  expect(await next(messages)).toBe('REPLACED to 1@1.2');
  // A client whose position belongs to the old rows does not continue in the new ones.
  const back = feed({ from: '0' });
  expect(await next(back)).toBe('EXPIRED to 1@1.2');
  await back.return?.();

  const second = stockVersion(2);
  const other = await createReadModelWriter(setting.db, second);
  await other.write({ upserted: [row('x', 7)] });
  setting.stage.serve(second);
  expect(await next(messages)).toBe('REPLACED +x:7 to 1@2.1');
  await other.write({ deleted: [['x']] });
  expect(await next(messages)).toBe('-x to 2@2.1');
  await messages.return?.();
});

test('with a filter, a row that no longer matches is removed, and rows that never match are never sent', async () => {
  await writer.write({ upserted: [row('a', 1, 'A'), row('b', 1, 'B')] });
  const where = { kind: 'compare', column: 'shelf', operator: 'eq', value: 'A' } as const;
  const messages = feed({ where, columns: ['units'] });
  expect(await next(messages)).toBe('reset +a:1 to 1@1.1');
  await writer.write({ upserted: [row('b', 2, 'B'), row('c', 2, 'B')] });
  await writer.write({ upserted: [row('a', 3, 'B'), row('b', 3, 'A')] });
  expect(await next(messages)).toBe('-a +b:3 to 3@1.1');
  await messages.return?.();
  // The server does not know which rows a reconnecting client holds.
  const back = feed({ where, from: '1@1.1' });
  expect(await next(back)).toBe('-c -a +b:3 to 3@1.1');
  await back.return?.();
});

test('without a snapshot a feed sends only changes from now on', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = feed({ snapshot: false });
  expect(await next(messages)).toBe('reset to 1@1.1');
  await writer.write({ deleted: [['a']] });
  expect(await next(messages)).toBe('-a to 2@1.1');
  await messages.return?.();
});

test('many rows are sent in parts, and changes made meanwhile follow them', async () => {
  const live = setting.another({ feedLimits: { keys: 100, batches: 10, rows: 2 } });
  await writer.write({ upserted: [row('a', 1), row('b', 1), row('c', 1), row('d', 1), row('e', 1)] });
  const messages = feed({}, live);
  expect(await next(messages)).toBe('reset +a:1 +b:1 more');
  await writer.write({ upserted: [row('f', 2)], deleted: [['a']] });
  const parts = [await next(messages), await next(messages), await next(messages)].join(' ');
  expect(parts).toContain('+c:1 +d:1 more +e:1');
  expect(parts).toContain('+f:2 -a to 2@1.1');
  await messages.return?.();
});

test('clients at the same position receive the same message object, with or without a filter, so it is serialized once', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 1, 'B')] });
  const where = { kind: 'compare', column: 'shelf', operator: 'eq', value: 'A' } as const;
  const all = [feed(), feed()];
  const ofA = [feed({ where }), feed({ where })];
  for (const messages of [...all, ...ofA]) await pull(messages);
  // The second row does not match the filter on shelf A.
  await writer.write({ upserted: [row('a', 2), row('b', 2, 'B')] });
  for (const [one, other] of [all, ofA] as const) {
    const message = await pull(one as (typeof all)[number]);
    expect(await pull(other as (typeof all)[number])).toBe(message);
  }
});

test('more changes at once than the limit lead to all rows, and many changes in a row are sent in parts', async () => {
  const live = setting.another({ feedLimits: { keys: 3, batches: 2, rows: 10 } });
  const messages = feed({}, live);
  expect(await next(messages)).toBe('reset to 0@1.1');
  await writer.write({ upserted: ['a', 'b', 'c', 'd'].map((item) => row(item, 1)) });
  expect(await next(messages)).toBe('TOO_MANY +a:1 +b:1 +c:1 +d:1 to 1@1.1');
  for (const units of [2, 3, 4, 5, 6]) await writer.write({ upserted: [row(`x${units}`, units), row('a', units)] });
  await messages.return?.();
  const back = feed({ from: '1@1.1' }, live);
  // Each part holds the current rows and a position to continue from.
  expect(await next(back)).toBe('+x2:2 +x3:3 +a:6 to 3@1.1');
  expect(await next(back)).toBe('+x4:4 +x5:5 +a:6 to 5@1.1');
  expect(await next(back)).toBe('+x6:6 +a:6 to 6@1.1');
  await back.return?.();
});

test('a page that ends among the changes of a partition that is ahead leads to all rows, and the feed goes on from there', async () => {
  const live = setting.another({ feedLimits: { keys: 100, batches: 2, rows: 10 } });
  const { name } = stock;
  await setting.db.query({
    text: 'insert into refold.processors (name, version, partition) values ($1, 1, 1)',
    values: [name],
  });
  for (const units of [1, 2, 3, 4]) await writer.write({ upserted: [row('a', units), row(`x${units}`, units)] });
  // Below its changes, the other partition may still write.
  const behind = 'update refold.processors set checkpoint = 1 where name = $1 and partition = 1';
  await setting.db.query({ text: behind, values: [name] });
  const messages = feed({ from: '1@1.1' }, live);
  expect(await next(messages)).toBe('TOO_MANY +a:4 +x1:1 +x2:2 +x3:3 +x4:4 to 1@1.1');
  await writer.write({ deleted: [['x1']] });
  expect(await next(messages)).toContain('-x1');
  await messages.return?.();
});

test('a slow consumer gets the latest state of each row, and the changes of an even slower one are read again when it pulls', async () => {
  const live = setting.another({ maxWaiting: 2 });
  const watching = feed({}, live);
  const messages = feed({}, live);
  expect(await next(messages)).toBe('reset to 0@1.1');
  expect(await next(watching)).toBe('reset to 0@1.1');
  for (const units of [1, 2, 3]) {
    await writer.write({ upserted: [row('a', units)] });
    expect(await next(watching)).toBe(`+a:${units} to ${units}@1.1`);
  }
  expect(await next(messages)).toBe('+a:3 to 3@1.1');
  for (const [index, item] of ['b', 'c', 'd', 'e', 'f'].entries()) {
    await writer.write({ upserted: [row(item, 1)] });
    expect(await next(watching)).toBe(`+${item}:1 to ${index + 4}@1.1`);
  }
  setting.statements.length = 0;
  expect(await next(messages)).toBe('+b:1 +c:1 +d:1 +e:1 +f:1 to 8@1.1');
  expect(setting.statements.filter((text) => text.includes('generate_series(0, 63)'))).toHaveLength(1);
  await Promise.all([messages.return?.(), watching.return?.()]);
});

test('a failing statement loses nothing', async () => {
  const messages = feed();
  expect(await next(messages)).toBe('reset to 0@1.1');
  let failures = 0;
  setting.intercept = ({ text }) => {
    if (text.includes(stock.tableName) && failures++ < 1) throw new Error('the database is away');
  };
  await writer.write({ upserted: [row('a', 1)] });
  await writer.write({ upserted: [row('b', 1)], deleted: [['a']] });
  const copy = new Set<unknown>();
  let at = globalPosition(0n);
  while (at < 2n) {
    const message = await pull(messages);
    expect(message.reset).toBe(false);
    at = message.position;
    for (const { operation, key } of message.changes) operation === 'UPSERT' ? copy.add(key[0]) : copy.delete(key[0]);
  }
  expect([...copy]).toEqual(['b']);
  expect(failures).toBeGreaterThan(0);
  await messages.return?.();
});

test('subscribers at the head share the statements and the messages', async () => {
  const messages = Array.from({ length: 20 }, () => feed());
  for (const one of messages) await pull(one);
  setting.statements.length = 0;
  await writer.write({ upserted: [row('a', 1)] });
  const got = await Promise.all(messages.map((one) => pull(one)));
  expect(new Set(got).size).toBe(1);
  expect(setting.statements.filter((text) => text.includes(stock.tableName))).toHaveLength(1);
  for (const one of messages) await one.return?.();
});
