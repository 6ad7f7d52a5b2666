import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { payloadVersion } from '../../../src/events/event-family.ts';
import {
  defineEvents,
  defineProjection,
  type EventFamily,
  type NewEvent,
  type Projection,
  t,
} from '../../../src/index.ts';
import { createRecorder, ReadTableInMemory } from '../../support/in-memory.ts';

const cart = defineEvents('shopping_cart', {
  CartOpened: z.object({ tags: z.array(z.string()) }),
  ItemAdded: z.object({ quantity: z.int() }),
  CartMerged: z.object({ into: z.string() }),
  CartRemoved: z.object({}),
});

const table = { cartId: t.text().primaryKey(), count: t.integer(), tags: t.list(t.text()) };
const base = {
  name: 'cart_summary',
  version: 1,
  events: cart,
  table,
  key: (event: { streamId: string }) => event.streamId,
} as const;

const opened: NewEvent = { type: 'CartOpened', payload: { tags: ['new'] } };
const added: NewEvent = { type: 'ItemAdded', payload: { quantity: 2 } };

describe('an error names the event if evolve tries to', () => {
  const where = "cart_summary@1: evolve of 'ItemAdded' failed at position 2 (stream 'cart-1', event 2): ";
  const immutable = ' Rows and events are immutable: return a new row instead of changing the old one.';

  test('change a row', async () => {
    const projection = defineProjection({
      ...base,
      evolve: {
        CartOpened: (_, { payload }) => ({ count: 0, tags: payload.tags }),
        ItemAdded: (row, { payload }) => row && Object.assign(row, { count: row.count + payload.quantity }),
      },
    });
    await expect(folded(projection, [opened, added])).rejects.toMatchObject({
      code: 'EVOLVE_FAILED',
      message: `${where}Cannot assign to read only property 'count' of object '#<Object>'${immutable}`,
      fields: { projection: 'cart_summary@1', type: 'ItemAdded', position: '2', streamId: 'cart-1' },
    });
  });

  test('change what is inside a row', async () => {
    const projection = defineProjection({
      ...base,
      evolve: {
        CartOpened: (_, { payload }) => ({ count: 0, tags: payload.tags }),
        ItemAdded: (row) => {
          (row?.tags as string[]).push('full');
          return row;
        },
      },
    });
    await expect(folded(projection, [opened, added])).rejects.toThrow(
      `${where}Cannot add property 1, object is not extensible${immutable}`,
    );
  });

  test('change an event', async () => {
    const projection = defineProjection({
      ...base,
      evolve: {
        ItemAdded: (_, { payload }) => {
          (payload as { quantity: number }).quantity = 0;
          return null;
        },
      },
    });
    await expect(folded(projection, [opened, added])).rejects.toThrow(
      `${where}Cannot assign to read only property 'quantity' of object '#<Object>'${immutable}`,
    );
  });

  test('return no row', async () => {
    const projection = defineProjection({ ...base, evolve: { ItemAdded: () => undefined as never } });
    await expect(folded(projection, [opened, added])).rejects.toThrow(
      `${where}evolve returned undefined; return the row, or null to remove it.`,
    );
  });

  test('return a row that does not fit the table', async () => {
    const projection = defineProjection({ ...base, evolve: { ItemAdded: () => ({ count: 1 }) as never } });
    await expect(folded(projection, [opened, added])).rejects.toThrow(
      `${where}column 'tags' is missing. Return it, or declare it nullable() or with a default().`,
    );
  });

  test('name a key that does not fit', async () => {
    const projection = defineProjection({ ...base, key: () => 1 as never, evolve: { ItemAdded: () => null } });
    await expect(folded(projection, [opened, added])).rejects.toThrow(
      "cart_summary@1: key of 'ItemAdded' failed at position 2 (stream 'cart-1', event 2): column 'cartId' expects a string, found 1.",
    );
  });
});

describe('a fold', () => {
  const counting = { ItemAdded: (row: { count: number } | null) => ({ count: (row?.count ?? 0) + 1, tags: [] }) };

  test('removes a row for null, and may create it again', async () => {
    const projection = defineProjection({ ...base, evolve: { ...counting, CartRemoved: () => null } });
    const removed = { type: 'CartRemoved', payload: {} };
    expect((await folded(projection, [added, removed])).plain()).toEqual([]);
    expect((await folded(projection, [added, added, removed, added])).plain()).toMatchObject([{ count: 1 }]);
  });

  test('leaves rows unchanged that no key names', async () => {
    for (const key of [() => null, () => []]) {
      expect((await folded(defineProjection({ ...base, key, evolve: counting }), [added])).plain()).toEqual([]);
    }
  });

  test('applies an event to each row that it names, once', async () => {
    const projection = defineProjection({ ...base, key: () => ['a', 'b', 'a'], evolve: counting });
    expect((await folded(projection, [added])).plain()).toMatchObject([
      { cartId: 'a', count: 1 },
      { cartId: 'b', count: 1 },
    ]);
  });

  test('applies an event to all its rows or to none', async () => {
    const projection = defineProjection({
      ...base,
      key: (event) => (event.type === 'CartMerged' ? [event.streamId, event.payload.into] : event.streamId),
      evolve: {
        ...counting,
        CartMerged: (row, { payload }, key) => {
          if (key === payload.into) throw new Error('no such cart');
          return row && { ...row, count: 0 };
        },
      },
    });
    const table = new ReadTableInMemory(projection);
    const merged: NewEvent = { type: 'CartMerged', payload: { into: 'cart-2' } };
    const events = await createRecorder()({ family: cart, streamId: 'cart-1', events: [added, merged] });
    expect(() => table.fold(events)).toThrow('no such cart');
    expect(table.plain()).toMatchObject([{ cartId: 'cart-1', count: 1 }]);
  });

  test('is not confused by event types named like members of every object', async () => {
    const odd: EventFamily = defineEvents('odd', { constructor: z.object({}), toString: z.object({}) });
    expect(payloadVersion(odd, 'constructor')).toBe(1);
    const projection = defineProjection({ ...base, events: odd, evolve: { toString: () => ({ count: 1, tags: [] }) } });
    const events = await createRecorder()({
      family: odd,
      streamId: 'a',
      events: [{ type: 'constructor', payload: {} }],
    });
    for (const event of events) expect(projection.apply(null, event, ['a'])).toBe(null);
  });
});

async function folded(projection: Projection, events: readonly NewEvent[]): Promise<ReadTableInMemory> {
  const table = new ReadTableInMemory(projection);
  table.fold(await createRecorder()({ family: cart, streamId: 'cart-1', events }));
  return table;
}
