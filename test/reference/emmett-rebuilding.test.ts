/** What Emmett promises of rebuilding read models, by number. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, type Refold } from '../../src/index.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { untilActive } from '../../src/testing.ts';
import { until } from '../support/until.ts';
import {
  type Application,
  answers,
  caughtUp,
  createApplication,
  live,
  refuses,
  statusOf,
  stopped,
} from './application.ts';
import { added, itemAndLineCount, itemCount } from './cart.ts';

const step = { actor: 'ann', reason: 'the counts were wrong' };
let application: Application;
/** The process before a deployment: first versions only. */
let shop: Refold;
/** A process of the deployment after it, beside the other one. */
let next: Refold;

beforeAll(async () => {
  application = await createApplication();
  shop = await application.start({
    projections: [
      itemCount('plain_count'),
      itemCount('inline_count', { mode: 'inline' }),
      itemCount('versioned_count'),
      itemCount('near_count'),
      itemCount('rebuilt_count'),
    ],
  });
  await shop.log.append(added('old', 1, 2));
  next = await application.start({
    projections: [
      itemAndLineCount('versioned_count', { activation: 'manual' }),
      itemAndLineCount('near_count', { activation: { maxLag: 1000 } }),
    ],
  });
});
afterAll(() => application.close());

/** The items of a cart in a read table. Undefined if there is no such row. */
async function itemsIn(table: string, cartId: string): Promise<number | undefined> {
  const text = `select items from read_models.${table} where cart_id = '${cartId}'`;
  const [row] = await application.sql<{ items: number }>(text);
  return row?.items;
}

test('1. A read model is declared as evolve(row or null, event), and the first event creates the row', async () => {
  await shop.log.append(added('first', 2));
  await answers(shop, '{ plainCount(cartId: "first") { items } }', { plainCount: { items: 2 } });
  await shop.log.append(added('first', 3));
  await answers(shop, '{ plainCount(cartId: "first") { items } }', { plainCount: { items: 5 } });
});

test('2. An inline projection is updated in the transaction that appends', async () => {
  await live(shop, 'inline_count@1');
  await shop.log.append(added('inline', 4));
  expect(await itemsIn('inline_count', 'inline')).toBe(4);
  const rolledBack = application.db.transaction(async (tx) => {
    await shop.log.append(added('inline', 1), tx);
    throw new Error('changed my mind');
  });
  await expect(rolledBack).rejects.toThrow('changed my mind');
  expect(await itemsIn('inline_count', 'inline')).toBe(4);
});

test('3. An asynchronous projection continues from its checkpoint after a failure', async () => {
  const withBug = itemCount('resumed_count', { fails: (quantity) => quantity === 13 });
  const before = await application.start({ projections: [withBug] }, { role: 'worker' });
  await caughtUp(before, 'resumed_count@1');
  await before.log.append(added('resumed', 1, 2, 13, 4));
  await stopped(before, 'resumed_count@1');
  expect(await itemsIn('resumed_count', 'resumed')).toBe(3);
  await before.stop();
  const after = await application.start({ projections: [itemCount('resumed_count')] }, { role: 'worker' });
  await caughtUp(after, 'resumed_count@1');
  expect(await itemsIn('resumed_count', 'resumed')).toBe(20);
  expect((await statusOf(after, 'resumed_count@1')).eventsFolded).toBe(await eventsAdded());
});

/** How many events the projections of this file handle. */
async function eventsAdded(): Promise<bigint> {
  const [row] = await application.sql<{ count: bigint }>(
    `select count(*) from refold.events where type = 'ItemAdded' and family = 'cart'`,
  );
  return row?.count ?? 0n;
}

test('4. A second version is added beside the first, with its own table, and is filled from existing events', async () => {
  await caughtUp(next, 'versioned_count@1', 'versioned_count@2');
  expect(await itemsIn('versioned_count_v1', 'old')).toBe(3);
  expect(await itemsIn('versioned_count_v2', 'old')).toBe(3);
});

test('5. A rebuild in place empties the table, resets the checkpoint and folds every event', async () => {
  await caughtUp(shop, 'rebuilt_count@1');
  await application.sql(`update read_models.rebuilt_count_v1 set items = 99`);
  await application.sql(`insert into read_models.rebuilt_count_v1 values ('ghost', 1)`);
  await shop.rebuilds.request('rebuilt_count@1', { ...step, inPlace: true });
  await caughtUp(shop, 'rebuilt_count@1');
  expect(await itemsIn('rebuilt_count', 'old')).toBe(3);
  expect(await itemsIn('rebuilt_count', 'ghost')).toBeUndefined();
  expect((await statusOf(shop, 'rebuilt_count@1')).eventsFolded).toBe(await eventsAdded());
});

test('6. The old table serves and stays current while the new one is built; queries switch when that has caught up, or is as near as declared', async () => {
  await caughtUp(next, 'versioned_count@2');
  await shop.log.append(added('old', 4));
  await answers(next, '{ versionedCount(cartId: "old") { items } }', { versionedCount: { items: 7 } });
  await refuses(next, '{ versionedCount(cartId: "old") { lines } }', 'Cannot query field "lines"');
  await next.lifecycle.activate('versioned_count', 2, step);
  await answers(next, '{ versionedCount(cartId: "old") { items lines } }', { versionedCount: { items: 7, lines: 3 } });
  await untilActive(next, 'near_count@2', { timeout: 240_000 });
});

test('7. Queries go to the highest active version, in every process and at once', async () => {
  await untilActive(next, 'near_count@2', { timeout: 240_000 });
  const lines = '{ nearCount(cartId: "old") { lines } }';
  await answers(next, lines, { nearCount: { lines: 3 } });
  await next.lifecycle.rollback('near_count', step);
  await until(async () => (await next.graphql(lines)).errors);
  await answers(next, '{ nearCount(cartId: "old") { items } }', { nearCount: { items: 7 } });
  await next.lifecycle.activate('near_count', 2, step);
  await answers(next, lines, { nearCount: { lines: 3 } });
});

test('8. Inline projections run concurrently, and serialize no appends', async () => {
  await live(shop, 'inline_count@1');
  await application.db.transaction(async (tx) => {
    await shop.log.append(added('held', 1), tx);
    const others = Array.from({ length: 20 }, (_, n) => `free-${n}`);
    await Promise.all(others.map((cartId) => shop.log.append(added(cartId, n(cartId)))));
    for (const cartId of others) expect(await itemsIn('inline_count', cartId)).toBe(n(cartId));
    expect(await itemsIn('inline_count', 'held')).toBeUndefined();
  });
  expect(await itemsIn('inline_count', 'held')).toBe(1);
});

const n = (cartId: string) => Number(cartId.split('-')[1]);

/** In another way: a rebuild fills a table of its own, so appends fold into the old one until the last moment, and are never left out. */
test('9. A rebuild waits for appends in flight; other appends go on meanwhile, and nothing of either is lost', async () => {
  await live(shop, 'inline_count@1');
  await application.db.transaction(async (tx) => {
    await shop.log.append(added('in-flight', 1), tx);
    await shop.rebuilds.request('inline_count@1', step);
    await shop.log.append(added('meanwhile', 2));
    expect((await statusOf(shop, 'inline_count@1')).rebuild).not.toBeNull();
  });
  await caughtUp(shop, 'inline_count@1');
  expect(await itemsIn('inline_count', 'in-flight')).toBe(1);
  expect(await itemsIn('inline_count', 'meanwhile')).toBe(2);
});

test('10. A rebuild that ends at event 500 of 1000 leaves its status; event 1001 does not touch the half-built table, and the next process completes it', async () => {
  let unable: number | undefined;
  const half = itemCount('half_count', { mode: 'inline', fails: (quantity) => quantity === unable });
  const first = await application.start({ projections: [half] }, { role: 'worker' });
  await until(async () => (await statusOf(first, 'half_count@1')).state === 'active');
  const { position: last } = await first.log.append(added('half', ...Array.from({ length: 1000 }, (_, n) => n + 1)));
  unable = 500;
  await first.rebuilds.request('half_count@1', { ...step, inPlace: true });
  const { position, state, inline } = await stopped(first, 'half_count@1');
  expect({ position, state, inline }).toEqual({ position: last - 501n, state: 'failed', inline: 'building' });
  await first.stop();
  await shop.log.append(added('half', 1001));
  const [row] = await application.sql<{ table: string }>(
    `select table_name as table from refold.projections where name = 'half_count'`,
  );
  expect(await itemsIn(String(row?.table), 'half')).toBe((499 * 500) / 2);
  unable = undefined;
  const second = await application.start({ projections: [half] }, { role: 'worker' });
  await caughtUp(second, 'half_count@1');
  expect(await itemsIn('half_count', 'half')).toBe((1001 * 1002) / 2);
  expect((await statusOf(second, 'half_count@1')).eventsFolded).toBe(await eventsAdded());
});

test('11. Of several rebuilds of a version the first wins; the others are refused, or wait for its end', async () => {
  const contested = itemCount('contested_count');
  const builder = await application.start({ projections: [contested] }, { role: 'worker' });
  await caughtUp(builder, 'contested_count@1');
  await builder.stop();
  const gateway = await application.start({}, { role: 'gateway' });
  const request = (actor: string, wait = false) =>
    gateway.rebuilds.request('contested_count@1', { actor, reason: 'a try', wait });
  await request('ann');
  await expect(request('bob')).rejects.toThrow('is being rebuilt already: ann asked for it');
  const waiting = request('cat', true);
  await application.start({ projections: [contested] }, { role: 'worker' });
  await waiting;
  await caughtUp(gateway, 'contested_count@1');
  const asked = await application.sql(
    `select actor from refold.transitions where name = 'contested_count' and reason like 'rebuild asked for%' order by id`,
  );
  expect(asked).toEqual([{ actor: 'ann' }, { actor: 'cat' }]);
});

test('12. Appends leave a new inline projection alone until it has been built', async () => {
  const late = itemCount('late_count', { mode: 'inline' });
  const gateway = await application.start({ projections: [late] }, { role: 'gateway' });
  await gateway.log.append(added('late', 1));
  expect(await itemsIn('late_count_v1', 'late')).toBeUndefined();
  expect(await statusOf(gateway, 'late_count@1')).toMatchObject({ state: 'building', inline: 'building' });
  await application.start({ projections: [late] }, { role: 'worker' });
  await live(gateway, 'late_count@1');
  await gateway.log.append(added('late', 2));
  expect(await itemsIn('late_count_v1', 'late')).toBe(3);
});

test('13. An owner is named by its process; nobody takes the work of a running one, and another process takes that of a stopped one', async () => {
  const owned = itemCount('owned_count');
  const ownerOf = async (refold: Refold) => (await statusOf(refold, 'owned_count@1')).owner;
  const one = await application.start({ projections: [owned] }, { role: 'worker', name: 'one' });
  await caughtUp(one, 'owned_count@1');
  const two = await application.start({ projections: [owned] }, { role: 'worker', name: 'two' });
  await until(async () => (await application.sql(`select from refold.processes where name = 'two'`)).length > 0);
  expect(await ownerOf(two)).toBe('one');
  await one.stop();
  await until(async () => (await ownerOf(two)) === 'two');
  await two.log.append(added('owned', 1));
  await caughtUp(two, 'owned_count@1');
  expect(await itemsIn('owned_count', 'owned')).toBe(1);
});

test('14. The definition of every version is kept in the database', async () => {
  const kept = await application.sql<{ version: number; columns: readonly { name: string }[] }>(
    `select version, definition -> 'columns' as columns from refold.projections where name = 'versioned_count' order by version`,
  );
  expect(kept.map(({ version, columns }) => ({ version, columns: columns.map(({ name }) => name) }))).toEqual([
    { version: 1, columns: ['cartId', 'items'] },
    { version: 2, columns: ['cartId', 'items', 'lines'] },
  ]);
});

/** In another way: the statement that appends makes the check itself. */
test('15. The check whether a projection is rebuilt costs an append no statement of its own', async () => {
  const note = defineEvents('note', { Taken: z.object({}) });
  const { db } = application;
  const sent: string[] = [];
  const watched: Database = {
    ...db,
    query(statement) {
      sent.push(statement.text);
      return db.query(statement);
    },
    transaction(work, options) {
      sent.push('begin');
      return db.transaction(work, options);
    },
  };
  const log = createEventLog(watched, [note]);
  await log.append({ family: note, streamId: 'n1', events: [{ type: 'Taken', payload: {} }] });
  expect(sent).toEqual([expect.stringContaining('refold.append')]);
});
