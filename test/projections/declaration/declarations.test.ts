import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  type Decimal,
  decimal,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineState,
  type Projection,
  type RecordedEvent,
  type RowOf,
  t,
} from '../../../src/index.ts';
import { defaultsOf, fingerprint } from '../../../src/projections/declaration/fingerprint.ts';

// Each @ts-expect-error marks a compile error: `npm run typecheck` fails if there is none.

const cart = defineEvents('shopping_cart', {
  CartOpened: z.object({ customerId: z.string(), note: z.string().optional() }),
  ItemAdded: z.object({ productId: z.string(), quantity: z.int(), unitPrice: z.string() }),
  CartConfirmed: z.object({ confirmedAt: z.iso.datetime() }),
});
const shop = defineEvents('shop', { ShopOpened: z.object({ city: z.string() }) });

const table = {
  cartId: t.text().primaryKey(),
  status: t.enum(['Opened', 'Confirmed']).index(),
  count: t.integer(),
  total: t.decimal(14, 2),
  items: t.list(t.object({ productId: t.text(), unitPrice: t.decimal(14, 2), note: t.text().nullable() })),
  note: t.text().nullable(),
  visits: t.bigint().default(0n),
};
const base = {
  name: 'cart_summary',
  version: 1,
  events: cart,
  table,
  key: (event: { streamId: string }) => event.streamId,
} as const;
const empty = { status: 'Opened', count: 0, total: '0', items: [] } as const;

const byDay = {
  name: 'sales_by_day',
  version: 1,
  events: cart,
  table: { shop: t.text().primaryKey(), day: t.date().primaryKey(), count: t.integer() },
} as const;

describe('types flow from the declarations', () => {
  test('into rows, events and keys', () => {
    const summary = defineProjection({
      ...base,
      key: (event) => {
        expectTypeOf(event.type).toEqualTypeOf<'CartOpened' | 'ItemAdded' | 'CartConfirmed'>();
        return event.streamId;
      },
      evolve: {
        CartOpened: (row, event, key) => {
          expectTypeOf(row).toEqualTypeOf<RowOf<typeof table> | null>();
          expectTypeOf(event.payload).toEqualTypeOf<{ customerId: string; note?: string | undefined }>();
          expectTypeOf(event.type).toEqualTypeOf<'CartOpened'>();
          expectTypeOf(key).toEqualTypeOf<string>();
          return { ...empty, note: event.payload.note };
        },
        ItemAdded: (row, { payload }) =>
          row && {
            ...row,
            count: row.count + payload.quantity,
            total: row.total.plus(decimal(payload.unitPrice).times(payload.quantity)),
            items: [...row.items, { productId: payload.productId, unitPrice: payload.unitPrice }],
          },
        CartConfirmed: (row) => row && { ...row, status: 'Confirmed' },
      },
    });
    expectTypeOf<RowOf<typeof table>>().toEqualTypeOf<{
      readonly cartId: string;
      readonly status: 'Opened' | 'Confirmed';
      readonly count: number;
      readonly total: Decimal;
      readonly items: readonly {
        readonly productId: string;
        readonly unitPrice: Decimal;
        readonly note: string | null;
      }[];
      readonly note: string | null;
      readonly visits: bigint;
    }>();
    expectTypeOf(summary.name).toEqualTypeOf<'cart_summary'>();
    expectTypeOf(summary).toExtend<Projection>();
    expect(defineConfig({ projections: [summary] }).projections).toEqual([summary]);
  });

  test('from several families, each event with its own payload', () => {
    defineProjection({
      ...base,
      events: [cart, shop],
      key: (event) => {
        if (event.type === 'ShopOpened') expectTypeOf(event.payload).toEqualTypeOf<{ city: string }>();
        return event.type === 'CartOpened' ? event.payload.customerId : event.streamId;
      },
      evolve: { ShopOpened: (_, { payload }) => ({ ...empty, note: payload.city }) },
    });
  });

  test('into a composite key', () => {
    const sales = defineProjection({
      ...byDay,
      key: (event) => [{ shop: event.streamId, day: event.recordedAt.slice(0, 10) }],
      evolve: {
        CartOpened: (row, _, key) => {
          expectTypeOf(key).toEqualTypeOf<{ readonly shop: string; readonly day: string }>();
          return { count: (row?.count ?? 0) + 1 };
        },
      },
    });
    expect(sales.keyColumns).toEqual(['shop', 'day']);
  });

  test('into the state and the events of a command', () => {
    const state = defineState(cart, () => ({ status: 'Empty' as 'Empty' | 'Opened' }), {
      CartOpened: () => ({ status: 'Opened' }),
    });
    const open = {
      name: 'openCart',
      input: z.object({ cartId: z.string() }),
      state,
      stream: (input: { cartId: string }) => input.cartId,
    } as const;
    defineCommand({
      ...open,
      decide(input, current, context) {
        expectTypeOf(input).toEqualTypeOf<{ cartId: string }>();
        expectTypeOf(current.status).toEqualTypeOf<'Empty' | 'Opened'>();
        expectTypeOf(context.now).toEqualTypeOf<string>();
        return current.status === 'Empty' ? { type: 'CartOpened', payload: { customerId: input.cartId } } : [];
      },
    });
    // @ts-expect-error an undefined event type
    defineCommand({ ...open, decide: () => ({ type: 'CartOpend', payload: { customerId: 'ada' } }) });
    // @ts-expect-error a payload that the schema refuses
    defineCommand({ ...open, decide: () => ({ type: 'CartOpened', payload: { customerId: 1 } }) });
    // @ts-expect-error a field that the input does not have
    defineCommand({ ...open, stream: (input) => input.cart, decide: () => [] });
    const opened = { type: 'CartOpened', payload: { customerId: 'ada' } } as const;
    const emitting = defineCommand({ ...open, emits: ['CartOpened'], decide: () => opened });
    expect(emitting.emits).toEqual(['CartOpened']);
    expect(defineCommand({ ...open, decide: () => opened }).emits).toEqual(cart.types);
    // @ts-expect-error a type that it does not emit
    const wrong = defineCommand({ ...open, emits: ['CartConfirmed'], decide: () => opened });
    const context = { streamVersions: [0], metadata: {}, now: '2026-01-31T12:00:00Z', loaded: undefined };
    const streams = wrong.streamsOf({ cartId: 'a' });
    expect(() => wrong.decide({ cartId: 'a' }, [{ status: 'Empty' }], streams, context)).toThrow(
      "defineCommand('openCart') decided 'CartOpened', which its 'emits' does not name. Add it there.",
    );
    // @ts-expect-error an undefined event type
    expect(() => defineCommand({ ...open, emits: ['CartOpend'], decide: () => [] })).toThrow(
      "'emits' names 'CartOpend', which shopping_cart does not define. Did you mean 'CartOpened'?",
    );
  });
});

describe('a compile error is', () => {
  test('a row that does not fit the table', () => {
    const declarations = [
      // @ts-expect-error a missing column
      () => defineProjection({ ...base, evolve: { CartOpened: () => ({ count: 0, total: '0', items: [] }) } }),
      // @ts-expect-error a number for a decimal
      () => defineProjection({ ...base, evolve: { CartOpened: () => ({ ...empty, total: 0 }) } }),
      // @ts-expect-error a text for an integer
      () => defineProjection({ ...base, evolve: { CartOpened: () => ({ ...empty, count: '0' }) } }),
      // @ts-expect-error a value outside of the enum
      () => defineProjection({ ...base, evolve: { CartConfirmed: (row) => row && { ...row, status: 'Closed' } } }),
      // @ts-expect-error null in a column that is not nullable
      () => defineProjection({ ...base, evolve: { CartOpened: () => ({ ...empty, count: null }) } }),
      // @ts-expect-error a missing field in an item of a list
      () => defineProjection({ ...base, evolve: { CartOpened: () => ({ ...empty, items: [{ productId: '' }] }) } }),
      // @ts-expect-error no row at all
      () => defineProjection({ ...base, evolve: { CartOpened: () => undefined } }),
    ];
    for (const declare of declarations) expect(declare).not.toThrow(); // found at run time when evolve runs
  });

  test('a column that the table does not declare', () => {
    defineProjection({
      ...base,
      // @ts-expect-error evolve.CartOpened returns 'totl'
      evolve: { CartOpened: () => ({ ...empty, totl: '0' }) },
    });
    defineProjection({
      ...base,
      // @ts-expect-error evolve.CartConfirmed returns 'confirmedAt'
      evolve: { CartConfirmed: (row, { payload }) => row && { ...row, confirmedAt: payload.confirmedAt } },
    });
  });

  test('a key that does not fit the key columns', () => {
    const evolve = { CartOpened: () => ({ count: 0 }) };
    // @ts-expect-error a single value for a composite key
    defineProjection({ ...byDay, key: (event) => event.streamId, evolve });
    // @ts-expect-error a part of the key
    defineProjection({ ...byDay, key: (event) => ({ shop: event.streamId }), evolve });
    // @ts-expect-error a number for a text
    defineProjection({ ...byDay, key: () => [{ shop: 1, day: '2026-01-31' }], evolve });
    // @ts-expect-error a field that the payload does not have
    defineProjection({ ...base, key: (event) => event.payload.cart, evolve: { CartOpened: () => null } });
  });

  test('a payload that JSON does not keep', () => {
    // @ts-expect-error an event payload must survive JSON: use a string here
    defineEvents('shop', { ShopOpened: z.object({ openedAt: z.date() }) });
    // @ts-expect-error an event payload must survive JSON: use a string here
    defineEvents('shop', { ShopOpened: z.object({ visits: z.bigint() }) });
    const level = z.object({
      at: z.date(),
      get children(): z.ZodArray<typeof level> {
        return z.array(level);
      },
    });
    // @ts-expect-error an event payload must survive JSON: use a string here
    defineEvents('shop', { ShopOpened: level });
  });

  test('but not a payload that contains itself, or any JSON', () => {
    const shelf = z.object({
      name: z.string(),
      get parts(): z.ZodArray<typeof shelf> {
        return z.array(shelf);
      },
    });
    const opened = defineEvents('shop', { ShopOpened: shelf, ShopNoted: z.object({ notes: z.json() }) });
    defineProjection({
      name: 'shop',
      version: 1,
      events: opened,
      table: { shopId: t.text().primaryKey(), first: t.text(), notes: t.json().nullable() },
      key: (event) => event.streamId,
      evolve: {
        ShopOpened: (_, { payload }) => ({ first: payload.parts[0]?.parts[0]?.name ?? '' }),
        ShopNoted: (row, { payload }) => row && { ...row, notes: payload.notes },
      },
    });
  });

  test('a change to a row or an event', () => {
    defineProjection({
      ...base,
      evolve: {
        CartConfirmed: (row, event) => {
          // @ts-expect-error rows are read-only
          if (row) row.count = 1;
          // @ts-expect-error lists in them are read-only, too
          row?.items.push();
          // @ts-expect-error events are read-only
          event.streamId = '';
          return row;
        },
      },
    });
  });
});

describe('a projection is refused, with the way out, when', () => {
  const evolve = { CartOpened: () => empty };
  const refused: readonly [string, () => unknown, string][] = [
    [
      'evolve handles an unknown event type',
      () =>
        defineProjection({
          ...base,
          // @ts-expect-error unknown event type
          evolve: { ItmAdded: () => null },
        }),
      "cart_summary@1: evolve handles 'ItmAdded', which shopping_cart does not define. Did you mean 'ItemAdded'?",
    ],
    [
      'two families define an event type that evolve handles',
      () =>
        defineProjection({
          ...base,
          events: [shop, defineEvents('stall', { ShopOpened: z.object({ city: z.string() }) })],
          evolve: { ShopOpened: () => empty },
        }),
      "cart_summary@1: evolve handles 'ShopOpened', which shop and stall both define. Rename one of the event types.",
    ],
    [
      'evolve handles nothing',
      () => defineProjection({ ...base, evolve: {} }),
      'cart_summary@1: evolve handles no event type; name at least one.',
    ],
    [
      'it reads no events',
      () => defineProjection({ ...base, events: [], evolve: evolve as never }),
      "cart_summary@1: 'events' names no family; name those that the projection reads.",
    ],
    [
      'its events are not a family',
      // @ts-expect-error not a family
      () => defineProjection({ ...base, events: { name: 'shopping_cart' }, evolve }),
      "cart_summary@1: 'events' holds something that defineEvents did not make.",
    ],
    [
      'a column is unique within an unknown column',
      () =>
        defineProjection({
          ...base,
          table: { ...table, code: t.text().nullable().unique({ within: 'statuss' }) },
          evolve: { CartOpened: (row) => row },
        }),
      "cart_summary@1: column 'code' is unique within 'statuss', which the table does not declare. Did you mean 'status'?",
    ],
    [
      'it has an unknown option',
      // @ts-expect-error unknown option
      () => defineProjection({ ...base, evolve, activaton: 'manual' }),
      "cart_summary@1: unknown option 'activaton'. Did you mean 'activation'?",
    ],
    [
      'its activation has an unknown option',
      // @ts-expect-error unknown option
      () => defineProjection({ ...base, evolve, activation: { maxLagg: 5 } }),
      "cart_summary@1: unknown option 'maxLagg' of activation. Did you mean 'maxLag'?",
    ],
    [
      'its name carries the version',
      () => defineProjection({ ...base, name: 'cart_summary_v2', evolve }),
      "cart_summary_v2@1: leave the version out of the name: { name: 'cart_summary', version: … }.",
    ],
    [
      'its name is not snake_case',
      () => defineProjection({ ...base, name: 'cartSummary', evolve }),
      "cartSummary@1: a projection is named in snake_case with at most 48 characters, such as 'cart_summary'.",
    ],
    [
      'its version is not a whole number',
      () => defineProjection({ ...base, version: 1.5, evolve }),
      'cart_summary@1.5: a version is a whole number from 1 on.',
    ],
    [
      'its version is 0',
      () => defineProjection({ ...base, version: 0, evolve }),
      'cart_summary@0: a version is a whole number from 1 on.',
    ],
    [
      'its mode is unknown',
      // @ts-expect-error an unknown mode
      () => defineProjection({ ...base, evolve, mode: 'sync' }),
      "cart_summary@1: 'mode' is 'async' or 'inline', found 'sync'.",
    ],
    [
      'it is inline and folds whole batches',
      () =>
        defineProjection({
          ...base,
          mode: 'inline',
          // @ts-expect-error merge rules are missing
          evolveSql: { events: ['ItemAdded'], rows: 'select 1', merge: {} },
        }),
      "cart_summary@1: mode 'inline' folds the events of one append, and 'evolveSql' folds batches. Declare 'evolve', or leave the mode out.",
    ],
    [
      'it is inline and split',
      () => defineProjection({ ...base, evolve, mode: 'inline', partitions: 2 }),
      "cart_summary@1: mode 'inline' has no processor to partition, because appends fold the events. Leave 'partitions' out, or the mode.",
    ],
    [
      'a GraphQL name is invalid',
      () => defineProjection({ ...base, evolve, graphql: { list: 'all carts' } }),
      "cart_summary@1: graphql.list 'all carts' is not a valid GraphQL name; use letters, digits and _.",
    ],
    [
      'the single field and the list field have the same GraphQL name',
      () => defineProjection({ ...base, evolve, graphql: { list: 'cartSummary' } }),
      "cart_summary@1: graphql.single and graphql.list are both 'cartSummary'; they need two names.",
    ],
  ];
  test.each(refused)('%s', (_, declare, message) => {
    expect(declare).toThrow(expect.objectContaining({ code: 'INVALID_DECLARATION', message }));
  });
});

describe('a table is refused, with the way out, when', () => {
  const key = t.text().primaryKey();
  const longName = `a${'B'.repeat(32)}`;
  test.each<[string, Record<string, unknown>, string]>([
    [
      'it has no key',
      { total: t.integer() },
      "the table has no key; mark one column, such as 't.text().primaryKey()'.",
    ],
    [
      'a column is in snake_case',
      { key, total_amount: t.text() },
      "column 'total_amount' is not camelCase (letters and digits, such as 'totalAmount').",
    ],
    [
      'a field is in snake_case',
      { key, item: t.object({ unit_price: t.text() }) },
      "field 'unit_price' is not camelCase (letters and digits, such as 'totalAmount').",
    ],
    [
      'a column is not made with t',
      { key, total: z.string() },
      "column 'total' was not made with 't', such as 't.text()'.",
    ],
    [
      'a column type is not called',
      { key, total: t.text },
      "column 'total' was not made with 't', such as 't.text()'.",
    ],
    [
      'a field is not made with t',
      { key, item: t.list(t.object({ name: t.text as never })) },
      "'item[].name' was not made with 't', such as 't.text()'.",
    ],
    [
      'a column has a name that PostgreSQL keeps for itself',
      { key, ctid: t.text() },
      "column 'ctid' has a name that PostgreSQL keeps for itself; choose another.",
    ],
    [
      'a column has a name that every object has',
      { key, constructor: t.text() },
      "column 'constructor' has a name that every JavaScript object has; choose another.",
    ],
    [
      'a name is too long for PostgreSQL',
      { key, [longName]: t.text() },
      `column '${longName}' is 'a${'_b'.repeat(32)}' in SQL, 65 characters; 63 are the most.`,
    ],
    ['a key is nullable', { key: key.nullable() }, "key column 'key' can't be nullable or have a default."],
    ['a key has a default', { key: key.default('x') }, "key column 'key' can't be nullable or have a default."],
    [
      'a key is a decimal',
      { key: t.decimal(8, 2).primaryKey() },
      "key column 'key' is a decimal; use text, uuid, date, an integer or an enum.",
    ],
    [
      'a key is an object',
      { key: t.object({ id: t.text() }).primaryKey() },
      "column 'key' is object; a key needs a scalar column.",
    ],
    [
      'a list is unique',
      { key, tags: t.list(t.text()).unique() },
      "column 'tags' is list; a unique index needs a scalar column.",
    ],
    [
      'a number is searched as text',
      { key, pieces: t.integer().index({ search: true }) },
      "column 'pieces' is integer; 'search' is for text. Leave it out: .index().",
    ],
    [
      'a number is long',
      { key, pieces: t.integer().index({ long: true }) },
      "column 'pieces' is integer; 'long' is for text. Leave it out: .index().",
    ],
    [
      'a key is long',
      { key: t.text().index({ long: true }).primaryKey() },
      "column 'key' is part of the key and long; keys and unique values are limited, because an index holds them as a whole. Leave out 'long'.",
    ],
    [
      'a unique text is long',
      { key, slug: t.text().unique().index({ long: true }) },
      "column 'slug' is unique and long; keys and unique values are limited, because an index holds them as a whole. Leave out 'long'.",
    ],
    [
      'a text is unique within a long one',
      { key, slug: t.text().unique({ within: 'title' }), title: t.text().index({ long: true }) },
      "column 'slug' is unique within 'title', which is long; an index holds both as a whole. Declare 'title' with .index().",
    ],
    [
      'bytes with an index have no small limit',
      { key, photo: t.bytes().index() },
      "the index of 'photo', 'key' could hold more bytes than PostgreSQL allows. Declare smaller values, such as t.bytes({ maxBytes: 64 }), or leave the index out.",
    ],
    [
      'a field has an index',
      { key, item: t.object({ name: t.text().index() }) },
      "'item.name' is part of a column; an index needs a column of the table.",
    ],
    [
      'an item is a key',
      { key, items: t.list(t.text().primaryKey()) },
      "'items[]' is part of a column; a key needs a column of the table.",
    ],
    [
      'a default does not fit',
      { key, count: t.integer().default(1.5) },
      "a default does not fit: column '(default)' expects a whole number of 32 bits (t.bigint holds more), found 1.5.",
    ],
  ])('%s', (_, columns, message) => {
    const declare = () => defineProjection({ ...base, table: columns as never, evolve: { CartOpened: () => null } });
    expect(declare).toThrow(
      expect.objectContaining({ code: 'INVALID_DECLARATION', message: `cart_summary@1: ${message}` }),
    );
  });

  test('an enum or a decimal is impossible', () => {
    expect(() => t.enum(['In stock'])).toThrow(
      "t.enum: 'In stock' is not a valid GraphQL enum value; use letters, digits and _.",
    );
    expect(() => t.enum(['A', 'A'])).toThrow('t.enum: names a value twice.');
    expect(() => t.decimal(2, 4)).toThrow(
      't.decimal(2, 4): expected 1 to 1000 digits in all, and no more of them after the point.',
    );
    expect(() => t.object({})).toThrow('t.object: has no field.');
  });
});

describe('events are refused, with the way out, when', () => {
  const opened = z.object({});
  const refused: readonly [string, () => unknown, string][] = [
    [
      'a family is not snake_case',
      () => defineEvents('ShoppingCart', { Opened: opened }),
      "defineEvents('ShoppingCart'): a family is named in snake_case, such as 'shopping_cart'.",
    ],
    [
      'there are none',
      () => defineEvents('shop', {}),
      "defineEvents('shop'): declares no event type; add at least one.",
    ],
    [
      'a type has no name',
      () => defineEvents('shop', { 'shop opened': opened }),
      "defineEvents('shop'): 'shop opened' is not a valid event type name; use letters and digits, such as 'ProductItemAdded'.",
    ],
    [
      'a schema is not a validator',
      // @ts-expect-error no Standard Schema validator
      () => defineEvents('shop', { Opened: { city: 'string' } }),
      "defineEvents('shop'): the schema of 'Opened' is not a Standard Schema validator; use zod, valibot, arktype or another that implements it.",
    ],
    [
      'an upcaster names an unknown type',
      // @ts-expect-error unknown event type
      () => defineEvents('shop', { ShopOpened: opened }, { upcasters: { ShopOpend: [] } }),
      "defineEvents('shop'): upcasters name 'ShopOpend', which it does not define. Did you mean 'ShopOpened'?",
    ],
    [
      'a former name is that of an unknown type',
      // @ts-expect-error unknown event type
      () => defineEvents('shop', { ShopOpened: opened }, { types: { ShopOpend: { was: ['Opened'] } } }),
      "defineEvents('shop'): 'types' names 'ShopOpend', which it does not define. Did you mean 'ShopOpened'?",
    ],
    [
      'a former name is declared as a type of its own',
      () =>
        defineEvents('shop', { ShopOpened: opened, Opened: opened }, { types: { ShopOpened: { was: ['Opened'] } } }),
      "defineEvents('shop'): 'Opened' is a former name of 'ShopOpened', and an event type of its own. A name belongs to one type: remove it from one of the two.",
    ],
    [
      'two types have one former name',
      () =>
        defineEvents(
          'shop',
          { ShopOpened: opened, Reopened: opened },
          { types: { ShopOpened: { was: ['Opened'] }, Reopened: { was: ['Opened'] } } },
        ),
      "defineEvents('shop'): 'Opened' is a former name of 'Reopened', and one of 'ShopOpened', too. A name belongs to one type: remove it from one of the two.",
    ],
    [
      'a former name is the name of today',
      () => defineEvents('shop', { ShopOpened: opened }, { was: ['store', 'shop'] }),
      "defineEvents('shop'): 'was' names 'shop', its name of today. Remove it there.",
    ],
    [
      'a former name is listed twice',
      () => defineEvents('shop', { ShopOpened: opened }, { was: ['store', 'store'] }),
      "defineEvents('shop'): 'was' names 'store' twice.",
    ],
    [
      'a former name was never a valid one',
      () => defineEvents('shop', { ShopOpened: opened }, { types: { ShopOpened: { was: ['shop opened'] } } }),
      "defineEvents('shop'): 'types.ShopOpened.was' holds 'shop opened', which was never a valid name.",
    ],
    [
      'former names are no list',
      // @ts-expect-error a text
      () => defineEvents('shop', { ShopOpened: opened }, { was: 'store' }),
      "defineEvents('shop'): 'was' is a list of former names, oldest first.",
    ],
    [
      'a state handles an unknown event type',
      // @ts-expect-error unknown event type
      () => defineState(cart, () => ({ open: false }), { CartOpend: () => ({ open: true }) }),
      "defineState of shopping_cart: evolve handles 'CartOpend', which shopping_cart does not define. Did you mean 'CartOpened'?",
    ],
  ];
  test.each(refused)('%s', (_, declare, message) => {
    expect(declare).toThrow(expect.objectContaining({ code: 'INVALID_DECLARATION', message }));
  });
});

describe('an application is refused when', () => {
  const summary = defineProjection({ ...base, evolve: { CartOpened: () => empty } });
  const other = defineProjection({
    ...base,
    name: 'basket',
    graphql: { list: 'cartSummaries' },
    evolve: { CartOpened: () => empty },
  });
  const twin = defineEvents('shopping_cart', { CartOpened: z.object({}) });
  const refused: readonly [string, () => unknown, string][] = [
    [
      'a version is declared twice',
      () => defineConfig({ projections: [summary, summary] }),
      'cart_summary@1: is declared twice. Give one of them the next version.',
    ],
    [
      'two projections have the same GraphQL name',
      () => defineConfig({ projections: [summary, other] }),
      "basket@1: its GraphQL name 'cartSummaries' belongs to 'cart_summary' already. Set 'graphql' names.",
    ],
    [
      'a family is declared twice',
      () => defineConfig({ projections: [summary], events: [twin] }),
      "defineEvents('shopping_cart'): is declared twice. Declare it once and import it where it is used.",
    ],
    [
      'a family is declared under its former and its new name',
      () => defineConfig({ events: [shop, defineEvents('store', { Opened: z.object({}) }, { was: ['shop'] })] }),
      "defineEvents('store'): 'shop' is one of its former names and the name of the family 'shop'. A name belongs to one family. After a rename, declare the family once, under its new name with the old one in 'was', and use it everywhere.",
    ],
    [
      'an option is unknown',
      // @ts-expect-error unknown option
      () => defineConfig({ projection: [summary] }),
      "unknown option 'projection' of config. Did you mean 'projections'?",
    ],
    [
      'a list holds something else',
      // @ts-expect-error not a projection
      () => defineConfig({ projections: [cart] }),
      "'projections' holds something that defineProjection did not make.",
    ],
    [
      'a number is out of bounds',
      () => defineConfig({ runtime: { pageSize: 0 } }),
      'runtime.pageSize is a whole number from 1 to 100000, found 0.',
    ],
    [
      'a kind of ownership is unknown',
      // @ts-expect-error an unknown kind
      () => defineConfig({ runtime: { ownership: 'leases' } }),
      "runtime.ownership is 'advisory', 'lease' or 'memory', found 'leases'.",
    ],
    [
      'leases would be renewed too late',
      () => defineConfig({ runtime: { leaseRenewalFactor: 1 } }),
      'runtime.leaseRenewalFactor is a share from 0.01 to 0.9, found 1.',
    ],
    [
      'a health port is none',
      () => defineConfig({ runtime: { healthPort: 70_000 } }),
      'runtime.healthPort is a whole number from 0 to 65535, found 70000.',
    ],
    [
      'sessions are shared and ownership needs one',
      () => defineConfig({ database: { notifications: false } }),
      "database.notifications is false, as behind a pooler in transaction mode, where advisory locks don't hold. Set runtime.ownership to 'lease'.",
    ],
    [
      'a switch is neither on nor off',
      // @ts-expect-error not a boolean
      () => defineConfig({ database: { prepare: 'off' } }),
      'database.prepare is true or false, found off. Leave it out for its default.',
    ],
  ];
  test.each(refused)('%s', (_, declare, message) => {
    expect(declare).toThrow(expect.objectContaining({ message }));
  });
});

test('a declaration is frozen', () => {
  const summary = defineProjection({ ...base, evolve: { CartOpened: () => empty } });
  expect(Object.isFrozen(summary)).toBe(true);
  expect(Object.isFrozen(summary.columns)).toBe(true);
  expect(Object.isFrozen(cart)).toBe(true);
});

test('the table, its columns and the GraphQL fields are named after the projection', () => {
  const summary = defineProjection({ ...base, version: 12, evolve: { CartOpened: () => empty } });
  expect(summary).toMatchObject({
    id: 'cart_summary@12',
    tableName: 'cart_summary_v12',
    graphql: { type: 'CartSummary', single: 'cartSummary', list: 'cartSummaries' },
    sqlNames: { cartId: 'cart_id', total: 'total' },
  });
  expect(defineProjection({ ...base, name: 'sheep', evolve: { CartOpened: () => empty } }).graphql).toMatchObject({
    single: 'sheep',
    list: 'sheepList',
  });
});

test('upcasters return what the schema describes, and no promise', () => {
  const sold = { Sold: z.object({ cents: z.number() }) };
  const read = (euros: number) => ({ cents: euros * 100 });
  defineEvents('shop', sold, { upcasters: { Sold: [(euros: string) => Number(euros), read] } });
  // @ts-expect-error not the payload of the schema
  defineEvents('shop', sold, { upcasters: { Sold: [read, ({ cents }: { cents: number }) => ({ pence: cents })] } });
  // @ts-expect-error a promise of the payload
  defineEvents('shop', sold, { upcasters: { Sold: [async (euros: number) => read(euros)] } });
  // @ts-expect-error a promise before the last step
  defineEvents('shop', sold, { upcasters: { Sold: [async (euros: string) => Number(euros), read] } });
});

describe('the fingerprints', () => {
  const made = (change: object = {}, evolve = { CartOpened: () => empty as never }) =>
    defineProjection({ ...base, ...change, evolve } as never);
  const original = made();

  test('stay the same for the same declaration, also under other names and descriptions', () => {
    const same = made({ description: 'carts', table: { ...table, note: table.note.describe('for the parcel') } });
    expect([same.tableFingerprint, same.codeFingerprint]).toEqual([
      original.tableFingerprint,
      original.codeFingerprint,
    ]);
  });

  test.each([
    ['a new column', { more: t.text().nullable() }],
    ['an index', { note: table.note.index() }],
    ['another precision', { total: t.decimal(15, 2) }],
    ['another field inside a list', { items: t.list(t.object({ productId: t.text() })) }],
  ])('of the table change with %s', (_, change) => {
    const changed = made({ table: { ...table, ...change } });
    expect(changed.tableFingerprint).not.toBe(original.tableFingerprint);
  });

  test('of the code change with the upcasters of the types that it reads, and only with them', () => {
    const sold = z.object({ cents: z.number() });
    const upcast = ({ euros }: { euros: number }) => ({ cents: euros * 100 });
    const columns = { id: t.text().primaryKey() };
    const key = (event: RecordedEvent) => event.streamId;
    const evolve = { Sold: () => ({}) };
    const reading = (upcasters: object) => {
      const events = defineEvents('shop', { Sold: sold, Noted: sold }, { upcasters });
      return defineProjection({ name: 'sales', version: 1, events, table: columns, key, evolve }).codeFingerprint;
    };
    const without = fingerprint([key.toString(), [['Sold', evolve.Sold.toString()]], defaultsOf(columns)]);
    const once = reading({ Sold: [upcast] });
    expect(reading({})).toBe(without); // stored by earlier releases
    expect(reading({ Sold: [], Noted: [upcast] })).toBe(without);
    expect(once).not.toBe(without);
    expect(reading({ Sold: [upcast] })).toBe(once);
    expect(reading({ Sold: [({ euros }: { euros: number }) => ({ cents: euros * 10 })] })).not.toBe(once);

    const renamed = defineEvents(
      'store',
      { Bought: sold },
      { was: ['shop'], types: { Bought: { was: ['Sold'] } }, upcasters: { Bought: [upcast] } },
    );
    const after = { name: 'sales', version: 1, events: renamed, table: columns, key } as const;
    expect(defineProjection({ ...after, evolve: { Bought: evolve.Sold } }).codeFingerprint).toBe(once);
  });

  test('of the code change with evolve, key and defaults', () => {
    const changed = [
      made({}, { CartOpened: () => null as never }),
      made({ key: () => '1' }),
      made({ table: { ...table, visits: table.visits.default(1n) } }),
    ];
    for (const { codeFingerprint, tableFingerprint } of changed) {
      expect(codeFingerprint).not.toBe(original.codeFingerprint);
      expect(tableFingerprint).toBe(original.tableFingerprint);
    }
  });
});
