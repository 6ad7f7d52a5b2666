import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { RefoldError } from '../../../src/errors.ts';
import { defineEvents } from '../../../src/events/event-family.ts';
import { beginning, globalPosition } from '../../../src/events/global-position.ts';
import { type Columns, t } from '../../../src/projections/columns/column.ts';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { defineProjection } from '../../../src/projections/declaration/define-projection.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../../src/projections/projection/projection.ts';
import type { LiveReadModelsOptions } from '../../../src/runtime/live/live-read-models.ts';
import { createLiveRows } from '../../../src/runtime/live/rows.ts';
import type { CheckpointListener } from '../../../src/runtime/reads/positions.ts';
import type { LiveListQuery } from '../../../src/schema/contract/operation-context.ts';
import type { Queryable, Statement } from '../../../src/store/statements/statement.ts';
import { createReadModelWriter, type ReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { createLiveSetting, type LiveSetting, often, pull, seldom, until } from './live-setting.ts';
import { replicateRow } from './replicas.ts';

let setting: LiveSetting;
/** Each test has its own read model. */
let cart: Projection;
let writer: ReadModelWriter;
let tests = 0;

const events = defineEvents('cart', { Opened: z.object({}) });
const table = {
  cartId: t.text().primaryKey(),
  status: t.enum(['Opened', 'Confirmed', 'Cancelled']).index(),
  units: t.integer().index(),
  total: t.decimal(10, 2),
};

function cartVersion(version: number, columns: Columns): Projection {
  return defineProjection({
    name: `cart_of_test_${tests}`,
    version,
    events,
    table: columns,
    key: (event) => event.streamId as never, // any key
    evolve: { Opened: () => null },
  });
}

beforeAll(async () => {
  setting = await createLiveSetting();
});

beforeEach(async () => {
  tests++;
  cart = cartVersion(1, table);
  writer = await createReadModelWriter(setting.db, cart);
  setting.stage.serve(cart);
  setting.intercept = () => {};
  setting.errors.length = 0;
});

afterAll(() => setting.close());

const columns = ['cartId', 'status', 'units', 'total'];

function row(cartId: string, units: number, given: Row = {}): Row {
  return { cartId, status: 'Opened', units, total: decimal('1.50'), ...given };
}

const openCarts: LiveListQuery = {
  where: { kind: 'compare', column: 'status', operator: 'eq', value: 'Opened' },
  orderBy: [{ column: 'units', direction: 'desc', nulls: 'last' }],
  first: 2,
  columns: ['cartId', 'units'],
};

function watchRow(id: string, after: bigint | null = null) {
  return setting.live.row(cart, [id], columns, { after: after === null ? null : globalPosition(after) });
}

function watchList(query: LiveListQuery = openCarts) {
  return setting.live.list(cart, query, { after: null });
}

test('the subscriber of a row gets the current state, then every change, then its removal', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = watchRow('a');
  expect(await pull(messages)).toEqual({ row: row('a', 1), position: 1n });
  await writer.write({ upserted: [row('a', 2), row('b', 7)] });
  expect(await pull(messages)).toEqual({ row: row('a', 2), position: 2n });
  await writer.write({ upserted: [row('b', 8)] });
  await writer.write({ deleted: [['a']] });
  expect(await pull(messages)).toEqual({ row: null, position: 4n });
  await messages.return?.();
});

test('a row that does not exist yet is null until it does', async () => {
  const messages = watchRow('later');
  expect(await pull(messages)).toEqual({ row: null, position: 0n });
  await writer.write({ upserted: [row('later', 1)] });
  expect(await pull(messages)).toEqual({ row: row('later', 1), position: 1n });
  await messages.return?.();
});

test('the subscriber of a list gets the list, then what entered it, changed in it and left it', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 2), row('c', 9, { status: 'Confirmed' })] });
  const messages = watchList();
  const nothing = { snapshot: null, entered: [], changed: [], left: [] };
  expect(await pull(messages)).toEqual({
    ...nothing,
    position: 1n,
    snapshot: [
      { cartId: 'b', units: 2 },
      { cartId: 'a', units: 1 },
    ],
  });
  // It leaves by the order, not by the filter.
  await writer.write({ upserted: [row('d', 5)] });
  expect(await pull(messages)).toEqual({
    ...nothing,
    position: 2n,
    entered: [{ cartId: 'd', units: 5 }],
    left: [['a']],
  });
  await writer.write({ upserted: [row('b', 3)] });
  expect(await pull(messages)).toEqual({ ...nothing, position: 3n, changed: [{ cartId: 'b', units: 3 }] });
  // A row from beyond the end of the list moves up.
  await writer.write({ upserted: [row('d', 5, { status: 'Cancelled' })] });
  expect(await pull(messages)).toEqual({
    ...nothing,
    position: 4n,
    entered: [{ cartId: 'a', units: 1 }],
    left: [['d']],
  });
  // Changes that do not touch the list cause no messages.
  await writer.write({ upserted: [row('c', 10, { status: 'Confirmed' }), row('e', 0)] });
  await writer.write({ deleted: [['b']] });
  expect(await pull(messages)).toEqual({
    ...nothing,
    position: 6n,
    entered: [{ cartId: 'e', units: 0 }],
    left: [['b']],
  });
  await messages.return?.();
});

test('a slow consumer of a row gets only the newest state', async () => {
  const messages = watchRow('a');
  await pull(messages);
  const other = watchRow('a');
  await pull(other);
  for (let units = 1; units <= 20; units++) {
    await writer.write({ upserted: [row('a', units)] });
    await pull(other);
  }
  expect(await pull(messages)).toEqual({ row: row('a', 20), position: 20n });
  await messages.return?.();
  await other.return?.();
});

test('a slow consumer of a list gets the sum of many changes, or the list again', async () => {
  await writer.write({ upserted: [row('a', 10), row('b', 9)] });
  const slow = watchList();
  const fast = watchList();
  await pull(slow);
  await pull(fast);
  const write = async (...batch: Row[]) => {
    await writer.write({ upserted: batch });
    await pull(fast);
  };
  await write(row('c', 11)); // b leaves
  await write(row('b', 12)); // and returns changed, so a leaves
  expect(await pull(slow)).toEqual({
    position: 3n,
    snapshot: null,
    entered: [{ cartId: 'c', units: 11 }],
    changed: [{ cartId: 'b', units: 12 }],
    left: [['a']],
  });
  for (let units = 20; units < 40; units++) await write(row(`n${units}`, units));
  expect(await pull(slow)).toMatchObject({
    snapshot: [{ units: 39 }, { units: 38 }],
    entered: [],
    changed: [],
    left: [],
  });
  await slow.return?.();
  await fast.return?.();
});

test('changes that cancel out send no message to a slow consumer', async () => {
  await writer.write({ upserted: [row('a', 10)] });
  const slow = watchList();
  const fast = watchList();
  await pull(slow);
  await pull(fast);
  await writer.write({ upserted: [row('b', 9)] });
  await pull(fast);
  await writer.write({ deleted: [['b']] });
  await pull(fast);
  const next = pull(slow);
  await writer.write({ upserted: [row('c', 8)] });
  expect(await next).toMatchObject({ position: 4n, entered: [{ cartId: 'c' }], changed: [], left: [] });
  await slow.return?.();
  await fast.return?.();
});

test('two hundred subscribers of one version need as many statements as a few', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 2)] });
  // Polls without a notification would count, too, and a slow machine makes more of them.
  const live = setting.another({ polling: seldom });
  const after = { after: null };
  const rows = Array.from({ length: 100 }, (_, index) => live.row(cart, [`${'ab'[index % 2]}`], columns, after));
  const lists = Array.from({ length: 100 }, (_, index) =>
    live.list(cart, { ...openCarts, first: 1 + (index % 4) }, after),
  );
  setting.statements.length = 0;
  const firstRows = await Promise.all(rows.map(pull));
  await Promise.all(lists.map(pull));
  // These read the version's position, the rows, and the four lists.
  expect(setting.statements.length).toBeLessThanOrEqual(10);
  // Subscribers of the same columns share the object, so it is serialized once.
  expect(new Set(firstRows.map((message) => message.row)).size).toBe(2);
  setting.statements.length = 0;
  await writer.write({ upserted: [row('a', 3)] });
  const [updates] = await Promise.all([
    Promise.all(lists.map(pull)),
    Promise.all(rows.filter((_, index) => index % 2 === 0).map(pull)),
  ]);
  expect(setting.statements.length).toBeLessThanOrEqual(10);
  expect(new Set(updates).size).toBe(4);
  setting.statements.length = 0;
  // A change to a row that nobody watches is checked once for all lists together.
  await writer.write({ upserted: [row('z', 0, { status: 'Cancelled' })] });
  await writer.write({ upserted: [row('b', 4)] });
  await Promise.all(rows.filter((_, index) => index % 2 === 1).map(pull));
  expect(setting.statements.length).toBeLessThanOrEqual(11);
  for (const messages of [...rows, ...lists]) await messages.return?.();
});

test('a change is read by one statement into one object, for one subscriber and for a thousand', async () => {
  const live = setting.another({ polling: seldom });
  const readingsOf = async (count: number, units: number) => {
    const messages = Array.from({ length: count }, () => live.row(cart, ['a'], columns, { after: null }));
    await Promise.all(messages.map(pull));
    setting.statements.length = 0;
    await writer.write({ upserted: [row('a', units)] });
    const states = await Promise.all(messages.map(pull));
    for (const one of messages) await one.return?.();
    return {
      readings: setting.statements.filter((text) => text.includes(cart.tableName)).length,
      states: new Set(states),
    };
  };
  await writer.write({ upserted: [row('a', 1)] });
  const ofOne = await readingsOf(1, 2);
  const ofMany = await readingsOf(1000, 3);
  expect([ofOne.readings, ofMany.readings, ofMany.states.size]).toEqual([1, 1, 1]);
});

test('rows that changed last are read in advance, until they stop changing', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 1)] });
  let readings = 0;
  const reads: Queryable = {
    query(statement) {
      readings++;
      return setting.db.query(statement);
    },
  };
  const rows = createLiveRows(cart, readSchema);
  const states: unknown[] = [];
  const watch = (id: string, names: readonly string[]) =>
    rows.add({
      key: [id],
      columns: names,
      floor: beginning,
      receive: ({ row }) => states.push(row),
      fail() {},
      historyChanged() {},
    });
  /** What was read before and after the changed rows were known. */
  const round = async (...changed: readonly string[]) => {
    readings = 0;
    const ahead = await rows.readAhead(reads);
    const before = readings;
    const keys = new Map(changed.map((id): [string, RowKey] => [keyText([id]), [id]]));
    await rows.serve(reads, keys, beginning, ahead);
    return [before, readings - before, states.splice(0)];
  };
  watch('a', ['units']);
  watch('b', ['units']);
  const [a, b] = ['a', 'b'].map((cartId) => ({ cartId, units: 1 }));
  const { total } = row('b', 1);
  expect(await round()).toEqual([0, 1, [a, b]]);
  expect(await round('a')).toEqual([0, 1, [a]]);
  expect(await round('a')).toEqual([1, 0, [a]]);
  expect(await round('a', 'b', 'c')).toEqual([1, 1, [a, b]]);
  expect(await round('b')).toEqual([1, 0, [b]]);
  watch('b', ['total']);
  expect(await round('b')).toEqual([1, 1, [b, { cartId: 'b', total }]]);
  expect(await round('c')).toEqual([1, 0, []]);
  expect(await round('b')).toEqual([0, 1, [b, { cartId: 'b', total }]]);
});

/** Positions whose notifications a test sends by hand. */
function toldByHand() {
  const listeners = new Set<CheckpointListener>();
  const positions: LiveReadModelsOptions['positions'] = {
    ...setting.positions,
    onCheckpoint(_, listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const tell = (checkpoint: bigint) => {
    for (const listener of listeners) listener(globalPosition(checkpoint));
  };
  return { positions, tell };
}

test('a change with two notifications is read once', async () => {
  const { positions, tell } = toldByHand();
  const live = setting.another({ positions, polling: seldom });
  const messages = live.row(cart, ['a'], columns, { after: null });
  await pull(messages);
  setting.statements.length = 0;
  for (let units = 1; units <= 5; units++) {
    const checkpoint = await writer.write({ upserted: [row('a', units)] });
    tell(checkpoint); // by this process
    tell(checkpoint); // by the database, while the change is read
    expect((await pull(messages)).row).toEqual(row('a', units));
    tell(checkpoint);
  }
  await live.close();
  expect(setting.statements.filter((text) => text.includes('recent_changes'))).toHaveLength(5);
});

test('a notification during a poll causes another poll, even if an older notification follows', async () => {
  const { positions, tell } = toldByHand();
  let afterLook = async () => {};
  const db: LiveReadModelsOptions['db'] = {
    ...setting.db,
    transaction: (work, how) =>
      setting.db.transaction(
        (tx) =>
          work({
            ...tx,
            async query<R extends object>(statement: Statement) {
              const found = await tx.query<R>(statement);
              if (statement.text.includes('recent_changes')) await afterLook();
              return found;
            },
          }),
        how,
      ),
  };
  const live = setting.another({ db, positions, polling: seldom });
  const messages = live.row(cart, ['a'], columns, { after: null });
  await pull(messages);
  const seen = await writer.write({ upserted: [row('a', 1)] });
  afterLook = async () => {
    afterLook = async () => {};
    tell(await writer.write({ upserted: [row('a', 2)] }));
    tell(seen); // late
  };
  tell(seen);
  expect((await pull(messages)).row).toEqual(row('a', 1));
  expect((await pull(messages)).row).toEqual(row('a', 2));
  await live.close();
});

test('after another start of the server, every row and list is read again: lost events leave no changes', async () => {
  let restarts = 0n;
  const restartable = (of: Queryable): Queryable => ({
    async query<R extends object>(statement: Statement) {
      const before = restarts; // a snapshot that is read already belongs to the server before
      const rows = await of.query<R>(statement);
      return rows.map((row) =>
        'serverStart' in row ? { ...row, serverStart: (row.serverStart as bigint) + before } : row,
      );
    },
  });
  const db: LiveReadModelsOptions['db'] = {
    ...setting.db,
    ...restartable(setting.db),
    transaction: (work, how) => setting.db.transaction((tx) => work({ ...tx, ...restartable(tx) }), how),
  };
  await writer.write({ upserted: [row('a', 1), row('b', 2)] });
  const live = setting.another({ db, positions: toldByHand().positions, polling: often });
  const messages = live.row(cart, ['a'], columns, { after: null });
  const list = live.list(cart, openCarts, { after: null });
  await pull(messages);
  await pull(list);
  await setting.db.query({ text: `delete from ${readSchema}.${cart.tableName} where cart_id = 'a'` });
  restarts++;
  expect(await pull(messages)).toMatchObject({ row: null });
  expect(await pull(list)).toMatchObject({ snapshot: [{ cartId: 'b' }] });
  await live.close();
});

test('leaving ends a waiting pull, and after the last subscriber the follower ends', async () => {
  const live = setting.another({ polling: often });
  const messages = live.row(cart, ['a'], columns, { after: null });
  await pull(messages);
  const waiting = messages.next();
  await messages.return?.();
  expect(await waiting).toEqual({ done: true, value: undefined });
  expect(await messages.next()).toEqual({ done: true, value: undefined });
  expect(live.subscriptions).toBe(0);
  await live.close();
  setting.statements.length = 0;
  await writer.write({ upserted: [row('a', 1)] });
  for (let trip = 0; trip < 30; trip++) await setting.db.query({ text: 'select' }); // many times longer than the polling interval
  expect(setting.statements).toEqual([]);
});

test('a subscription that was never pulled never begins', async () => {
  const live = setting.another({});
  const messages = live.row(cart, ['a'], columns, { after: null });
  expect(live.subscriptions).toBe(0);
  await messages.return?.();
  expect(await messages.next()).toEqual({ done: true, value: undefined });
});

test('closing ends every subscription without an error', async () => {
  const live = setting.another({});
  const row = live.row(cart, ['a'], columns, { after: null });
  const list = live.list(cart, openCarts, { after: null });
  await pull(row);
  await pull(list);
  const waiting = [row.next(), list.next()];
  await live.close();
  expect((await Promise.all(waiting)).map(({ done }) => done)).toEqual([true, true]);
});

test('subscriptions survive a failing database, and lose nothing', async () => {
  await writer.write({ upserted: [row('a', 1), row('b', 2)] });
  const messages = watchRow('a');
  const list = watchList();
  await pull(messages);
  await pull(list);
  setting.intercept = () => {
    throw new RefoldError('DATABASE_UNAVAILABLE', 'down');
  };
  await writer.write({ upserted: [row('a', 5)] });
  await until(() => setting.errors.length > 1);
  await writer.write({ upserted: [row('b', 6)] });
  setting.intercept = () => {};
  expect(await pull(messages)).toEqual({ row: row('a', 5), position: 3n });
  expect(await pull(list)).toMatchObject({ snapshot: null, changed: [{ cartId: 'b' }, { cartId: 'a' }] });
  await messages.return?.();
  await list.return?.();
});

test('a list that the server refuses to read does not delay the others', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const good = watchList();
  const bad = watchList({ ...openCarts, first: 7 });
  await pull(good);
  await pull(bad);
  setting.intercept = ({ text }) => {
    if (text.includes('limit 8'))
      throw new RefoldError('DATABASE_ERROR', 'canceling statement due to statement timeout');
  };
  for (let units = 2; units < 5; units++) {
    await writer.write({ upserted: [row('a', units)] });
    expect(await pull(good)).toMatchObject({ changed: [{ units }] });
  }
  setting.intercept = () => {};
  expect(await pull(bad)).toMatchObject({ snapshot: null, changed: [{ units: 4 }] });
  await good.return?.();
  await bad.return?.();
});

test('a subscription reads everything again if changes were pruned while the database was away', async () => {
  const live = setting.another({ changesKept: 0 });
  await writer.write({ upserted: [row('a', 1), row('b', 1)] });
  const messages = live.row(cart, ['a'], columns, { after: null });
  const list = live.list(cart, openCarts, { after: null });
  await pull(messages);
  await pull(list);
  setting.intercept = () => {
    throw new RefoldError('DATABASE_UNAVAILABLE', 'down');
  };
  await writer.write({ upserted: [row('a', 2)] });
  await writer.write({ deleted: [['b']] });
  await setting.db.query({ text: 'delete from refold.changes where name = $1', values: [cart.name] });
  setting.intercept = () => {};
  expect(await pull(messages)).toEqual({ row: row('a', 2), position: 3n });
  expect(await pull(list)).toMatchObject({ position: 3n, snapshot: [{ cartId: 'a', units: 2 }] });
  await live.close();
});

test('a subscription reads everything again after more batches than are worth following one by one', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const list = watchList();
  await pull(list);
  setting.intercept = () => {
    throw new RefoldError('DATABASE_UNAVAILABLE', 'down');
  };
  for (let units = 2; units <= 300; units++) await writer.write({ upserted: [row('a', units)] });
  setting.intercept = () => {};
  expect(await pull(list)).toMatchObject({ position: 300n, snapshot: [{ cartId: 'a', units: 300 }] });
  await list.return?.();
});

test('a version that is rebuilt in place is read again once it reaches its former position', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  await writer.write({ upserted: [row('a', 2)] });
  const messages = watchRow('a');
  await pull(messages);
  await setting.db.query({ text: 'delete from refold.changes where name = $1', values: [cart.name] });
  await writer.write({ upserted: [row('a', 1)] }, { to: globalPosition(1n) });
  await writer.write({ upserted: [row('a', 2)] }, { to: globalPosition(2n) });
  await writer.write({ upserted: [row('a', 3)] }, { to: globalPosition(3n) });
  expect(await pull(messages)).toEqual({ row: row('a', 3), position: 3n });
  await messages.return?.();
});

test('polling is enough if no notification comes', async () => {
  const live = setting.another({ polling: often });
  const messages = live.row(cart, ['a'], columns, { after: null });
  await pull(messages);
  await writer.write({ upserted: [row('a', 1)] }, { notify: false });
  expect(await pull(messages)).toEqual({ row: row('a', 1), position: 1n });
  await live.close();
});

test('notifications are enough without polling', async () => {
  const live = setting.another({ polling: seldom });
  const messages = live.row(cart, ['a'], columns, { after: null });
  await pull(messages);
  await writer.write({ upserted: [row('a', 1)] });
  expect(await pull(messages)).toEqual({ row: row('a', 1), position: 1n });
  await live.close();
});

test('the first state includes the requested position', async () => {
  const messages = watchRow('a', 2n);
  const first = pull(messages);
  await writer.write({ upserted: [row('a', 1)] });
  await writer.write({ upserted: [row('a', 2)] });
  expect(await first).toEqual({ row: row('a', 2), position: 2n });
  await messages.return?.();
});

test('leaving ends the wait for a position', async () => {
  const messages = watchRow('a', 1000n);
  const first = messages.next();
  await messages.return?.();
  expect(await first).toEqual({ done: true, value: undefined });
});

test('a subscription to something impossible is a client error', async () => {
  const list = (query: Partial<LiveListQuery>) => setting.live.list(cart, { ...openCarts, ...query }, { after: null });
  const mistakes: AsyncIterator<unknown>[] = [
    setting.live.row(cart, ['a', 'b'], columns, { after: null }),
    setting.live.row(cart, [7], columns, { after: null }),
    setting.live.row(cart, ['a'], ['nothing'], { after: null }),
    list({ first: 1001 }),
    list({ first: 0 }),
    list({ where: { kind: 'compare', column: 'status', operator: 'eq', value: 'Lost' } }),
    list({ columns: ['nothing'] }),
  ];
  for (const messages of mistakes) {
    await expect(messages.next()).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(await messages.next()).toMatchObject({ done: true });
  }
});

test('a subscription fails before a version is active', async () => {
  setting.stage.serve(cart, false);
  await expect(watchRow('a').next()).rejects.toMatchObject({
    code: 'PROJECTION_NOT_READY',
    fields: { projection: cart.name, version: 1, position: '0' },
  });
});

test('subscriptions move to the version that is activated, and ignore later changes of the old one', async () => {
  const next = cartVersion(2, { ...table, total: t.decimal(12, 4), note: t.text().nullable() });
  const nextWriter = await createReadModelWriter(setting.db, next);
  await writer.write({ upserted: [row('same', 1), row('differs', 1)] });
  await nextWriter.write({ upserted: [row('same', 1, { note: null }), row('differs', 7, { note: null })] });
  const same = watchRow('same');
  const differs = watchRow('differs');
  const list = watchList();
  for (const messages of [same, differs, list]) await pull<unknown>(messages);
  setting.stage.serve(next);
  expect(await pull(differs)).toEqual({ row: row('differs', 7), position: 1n });
  expect(await pull(list)).toEqual({
    position: 1n,
    snapshot: [
      { cartId: 'differs', units: 7 },
      { cartId: 'same', units: 1 },
    ],
    entered: [],
    changed: [],
    left: [],
  });
  await writer.write({ upserted: [row('same', 99)] });
  await nextWriter.write({ upserted: [row('same', 2, { note: 'x' })] });
  expect(await pull(same)).toEqual({ row: row('same', 2), position: 2n });
  expect(await pull(list)).toMatchObject({ snapshot: null, changed: [{ cartId: 'same', units: 2 }] });
  // A rollback moves them back.
  setting.stage.serve(cart);
  expect(await pull(same)).toEqual({ row: row('same', 99), position: 2n });
  for (const messages of [same, differs, list]) await messages.return?.();
});

test('the old version’s last message that nobody pulled is replaced by the new version’s', async () => {
  const next = cartVersion(2, table);
  const nextWriter = await createReadModelWriter(setting.db, next);
  const messages = watchRow('a');
  const other = watchRow('a');
  await pull(messages);
  await pull(other);
  await writer.write({ upserted: [row('a', 1)] });
  await pull(other);
  await nextWriter.write({ upserted: [row('a', 2)] });
  setting.stage.serve(next);
  expect(await pull(messages)).toEqual({ row: row('a', 2), position: 1n });
  await messages.return?.();
  await other.return?.();
});

test('subscriptions wait for a new version that is behind, because positions never go back', async () => {
  const next = cartVersion(2, table);
  const nextWriter = await createReadModelWriter(setting.db, next);
  await nextWriter.write({ upserted: [row('a', 1)] });
  await writer.write({ upserted: [row('a', 1)] });
  await writer.write({ upserted: [row('a', 2)] });
  const messages = watchRow('a');
  expect(await pull(messages)).toEqual({ row: row('a', 2), position: 2n });
  setting.stage.serve(next);
  const waiting = pull(messages);
  await nextWriter.write({ upserted: [row('a', 22)] });
  expect(await waiting).toEqual({ row: row('a', 22), position: 2n });
  await messages.return?.();
});

test('a subscription that reads columns missing in the new version ends, naming the columns', async () => {
  const next = cartVersion(2, {
    cartId: t.text().primaryKey(),
    status: t.enum(['Opened', 'Lost']).index(),
    units: t.integer().nullable(),
  });
  await createReadModelWriter(setting.db, next);
  const all = watchRow('a');
  const list = watchList({ ...openCarts, columns: ['cartId'] });
  const key = setting.live.row(cart, ['a'], ['cartId'], { after: null });
  for (const messages of [all, list, key]) await pull<unknown>(messages);
  setting.stage.serve(next);
  await expect(all.next()).rejects.toMatchObject({
    code: 'PROJECTION_SWITCHED',
    fields: { projection: cart.name, from: 1, to: 2, columns: ['status', 'units', 'total'] },
  });
  // The filter and the order read them.
  await expect(list.next()).rejects.toMatchObject({
    code: 'PROJECTION_SWITCHED',
    fields: { columns: ['status', 'units'] },
  });
  expect(await all.next()).toMatchObject({ done: true });
  const waiting = key.next();
  await key.return?.();
  expect(await waiting).toMatchObject({ done: true });
});

test('subscriptions pause while no version is active, and continue when one is', async () => {
  await writer.write({ upserted: [row('a', 1)] });
  const messages = watchRow('a');
  await pull(messages);
  setting.stage.serve(cart, false);
  await writer.write({ upserted: [row('a', 2)] });
  await writer.write({ upserted: [row('a', 3)] });
  setting.stage.serve(cart);
  expect(await pull(messages)).toEqual({ row: row('a', 3), position: 3n });
  await messages.return?.();
});

test('a consumer that fails is unsubscribed', async () => {
  const live = setting.another({});
  const failing = replicateRow(live.row(cart, ['a'], columns, { after: null }), () =>
    Promise.reject(new Error('no more')),
  );
  await expect(failing.ended).rejects.toThrow('no more');
  expect(live.subscriptions).toBe(0);
});

test('a wait for a position in a table that a rebuild has replaced continues with the rows of the new table', async () => {
  const { stage } = setting;
  const checkpoint = await writer.write({ upserted: [row('a', 1)] });
  stage.serve(storedIn(cart, 'the_table_before'));
  stage.refresh = async () => stage.serve(cart);
  const messages = watchRow('a', checkpoint);
  expect((await pull(messages)).row).toEqual(row('a', 1));
  await messages.return?.();
  stage.refresh = async () => {};
  expect(setting.errors).toEqual([]);
});
