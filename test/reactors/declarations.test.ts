import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  type Command,
  defineCommand,
  defineConfig,
  defineEvents,
  defineReactor,
  type ReactorOptions,
} from '../../src/index.ts';
import { selfFeedingWarnings } from '../../src/reactors/reaction-chains.ts';

const order = defineEvents('order', {
  OrderPlaced: z.object({ total: z.string() }),
  OrderShipped: z.object({ parcel: z.string() }),
});
const parcel = defineEvents('parcel', { ParcelLost: z.object({ where: z.string() }) });

test('handlers know the payloads of their events, and only the handled types are read', () => {
  const reactor = defineReactor({
    name: 'mails',
    events: [order, parcel],
    handle: {
      OrderPlaced: async ({ payload }) => void expectTypeOf(payload).toEqualTypeOf<{ total: string }>(),
      ParcelLost: async ({ payload }, { signal, attempt }) => {
        expectTypeOf(payload).toEqualTypeOf<{ where: string }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(attempt).toEqualTypeOf<number>();
        return 'skip';
      },
    },
  });
  expect(reactor.filter).toEqual([
    { family: 'order', types: ['OrderPlaced'] },
    { family: 'parcel', types: ['ParcelLost'] },
  ]);
  expect(reactor).toMatchObject({ from: 'now', concurrency: 1, timeout: 60_000, policy: 'stop' });
});

test('one function may handle all events', () => {
  const reactor = defineReactor({
    name: 'audit',
    events: order,
    handle: async (event) => void expectTypeOf(event.type).toEqualTypeOf<'OrderPlaced' | 'OrderShipped'>(),
  });
  expect(reactor.filter).toEqual([{ family: 'order', types: ['OrderPlaced', 'OrderShipped'] }]);
});

test('handlers know the events that they wait for, which are read, and need no handler', () => {
  const reactor = defineReactor({
    name: 'lost',
    events: [order, parcel],
    waitsFor: { ParcelLost: ({ payload }) => payload.where, OrderShipped: () => undefined },
    handle: {
      OrderPlaced: async (_, { wait }) => {
        const lost = await wait.for('ParcelLost', { key: 'a', timeout: 1 });
        expectTypeOf(lost?.payload).toEqualTypeOf<{ where: string } | undefined>();
        const either = await wait.for(['ParcelLost', 'OrderShipped'], { key: 'a' });
        expectTypeOf(either.type).toEqualTypeOf<'ParcelLost' | 'OrderShipped'>();
        // @ts-expect-error a type that waitsFor does not name
        await wait.for('OrderPlaced', { key: 'a' });
      },
    },
  });
  expect(reactor.filter).toEqual([
    { family: 'order', types: ['OrderPlaced', 'OrderShipped'] },
    { family: 'parcel', types: ['ParcelLost'] },
  ]);
  expect(reactor.handled).toEqual([{ family: 'order', types: ['OrderPlaced'] }]);
  defineReactor({
    name: 'mails',
    events: order,
    // @ts-expect-error nothing to wait for
    handle: { OrderPlaced: async (_, { wait }) => void (await wait.for('OrderShipped', { key: 'a' })) },
  });
});

test('an unknown event, field or result in a handler is a compile error', () => {
  const name = 'mails';
  const events = order;
  // @ts-expect-error an unknown event
  expect(() => defineReactor({ name, events, handle: { OrderLost: async () => {} } })).toThrow();
  // @ts-expect-error an unknown field
  defineReactor({ name, events, handle: { OrderPlaced: async ({ payload }) => void payload.parcel } });
  // @ts-expect-error an unsupported result
  defineReactor({ name, events, handle: { OrderPlaced: async () => 'done' } });
});

describe('a declaration that can’t work is refused, with the way out', () => {
  const handle = { OrderPlaced: async () => {} };
  const cases: [Partial<Record<keyof ReactorOptions<typeof order>, unknown>> & Record<string, unknown>, string][] = [
    [{ name: 'Mails' }, "defineReactor('Mails'): a reactor is named in snake_case, such as 'confirmation_mails'."],
    [
      { handle: { OrderPlacd: () => {} } },
      "handle names 'OrderPlacd', which order does not define. Did you mean 'OrderPlaced'?",
    ],
    [{ handle: {} }, "'handle' names no event type; name at least one."],
    [{ handle: { OrderPlaced: 1 } }, 'handle.OrderPlaced is no function.'],
    [{ events: [] }, "'events' is a family, or a list of families, created with defineEvents."],
    [{ from: 'start' }, "'from' is 'beginning' or 'now', found 'start'."],
    [{ concurrency: 0 }, "'concurrency' is a whole number from 1 to 1000, found 0."],
    [{ timeout: 0 }, "'timeout' is a number of milliseconds, found 0."],
    [{ key: 'stream' }, "'key' is a function from an event to a text."],
    [{ onError: 'retry' }, "onError is 'stop', 'skip' or 'dead-letter', found 'retry'."],
    [
      { onError: { policy: 'stop', onSkip: () => {} } },
      "onError.onSkip belongs to the policy 'skip', found it with 'stop'.",
    ],
    [
      { onError: { policy: 'stop', retry: [] } },
      "unknown option 'retry' of onError. It knows 'policy', 'retries', 'onSkip'.",
    ],
    [
      { onError: { policy: 'stop', retries: [{ times: -1 }] } },
      "a retry rule's 'times' is a whole number from 0 on, or Infinity, found -1.",
    ],
    [
      { onError: { policy: 'stop', retries: [{ times: 1, jitter: 2 }] } },
      "a retry rule's 'jitter' is a share from 0 to 1, found 2.",
    ],
    [{ onError: { policy: 'stop', retries: [{ times: 1, max: 2 }] } }, "unknown option 'max' of a retry rule."],
    [{ onError: { policy: 'stop', retries: { times: 1 } } }, "'retries' is a list of rules, such as [{ times: 5 }]."],
    [{ retries: [] }, "unknown option 'retries'."],
    [{ commands: ['confirm'] }, "'commands' is a list of commands, created with defineCommand."],
    [{ waitsFor: [] }, "'waitsFor' names the event types that handlers wait for, each with a function"],
    [{ waitsFor: {} }, "'waitsFor' names no event type; name at least one, or leave it out."],
    [
      { waitsFor: { OrderPlacd: () => 'a' } },
      "waitsFor names 'OrderPlacd', which order does not define. Did you mean 'OrderPlaced'?",
    ],
    [
      { waitsFor: { OrderPlaced: 'id' } },
      'waitsFor.OrderPlaced is no function. It returns the key of an event, such as',
    ],
    [{ maxChain: 0 }, "'maxChain' is a whole number from 1 on, or Infinity, found 0."],
  ];
  test.each(cases)('%j', (options, message) => {
    // Declared as an untyped program would.
    const given = { name: 'mails', events: order, handle, ...options } as unknown as ReactorOptions<typeof order>;
    expect(() => defineReactor(given)).toThrow(message);
  });

  test('a type that two families define', () => {
    const other = defineEvents('other', { OrderPlaced: z.object({}) });
    expect(() => defineReactor({ name: 'mails', events: [order, other], handle })).toThrow(
      "handle names 'OrderPlaced', which order and other both define.",
    );
  });

  test('two awaited types that the log keeps under one name', () => {
    const renamed = defineEvents(
      'visit',
      { VisitLost: z.object({}) },
      { types: { VisitLost: { was: ['ParcelLost'] } } },
    );
    const options = { name: 'mails', events: [parcel, renamed], handle: { ParcelLost: async () => {} } };
    const waitsFor = { ParcelLost: () => 'a', VisitLost: () => 'b' };
    expect(() => defineReactor({ ...options, waitsFor })).toThrow(
      "waitsFor names 'ParcelLost' and 'VisitLost', which the log keeps under one name, 'ParcelLost'.",
    );
  });

  test('two reactors with the same name', () => {
    const reactor = defineReactor({ name: 'mails', events: order, handle });
    expect(() => defineConfig({ reactors: [reactor, reactor] })).toThrow(
      "defineReactor('mails'): is declared twice. Give one of them another name, or the next version.",
    );
    expect(defineConfig({ reactors: [reactor] }).families).toEqual([order]);
  });
});

test('a start warns of a reactor whose commands may write an event that it handles, if they say what they write', () => {
  const command = <const E extends 'OrderPlaced' | 'OrderShipped'>(emits?: readonly E[]) =>
    defineCommand({
      name: 'ship',
      input: z.object({ id: z.string() }),
      events: order,
      ...(emits ? { emits } : {}),
      stream: ({ id }) => id,
      decide: () => [],
    });
  const warnings = (commands?: readonly Command[]) =>
    selfFeedingWarnings([
      defineReactor({
        name: 'shipping',
        events: order,
        handle: { OrderPlaced: async () => {} },
        ...(commands && { commands }),
      }),
    ]);
  expect(warnings()).toEqual([]);
  expect(warnings([command()])).toEqual([]);
  expect(warnings([command(['OrderShipped'])])).toEqual([]);
  expect(warnings([command(['OrderShipped', 'OrderPlaced'])])).toEqual([
    "shipping handles 'OrderPlaced', which its command 'ship' may write: it can react to itself, up to 100 times in a chain ('maxChain').",
  ]);
  // A version may write what another one handles.
  const ship = command(['OrderShipped']);
  const handle = { OrderShipped: async () => {} };
  const first = defineReactor({
    name: 'shipping',
    events: order,
    commands: [ship],
    handle: { OrderPlaced: async () => {} },
  });
  const second = defineReactor({ name: 'shipping', version: 2, events: order, handle });
  expect(selfFeedingWarnings([first, second])).toEqual([
    expect.stringContaining("shipping handles 'OrderShipped', which its command 'ship' may write"),
  ]);
});
