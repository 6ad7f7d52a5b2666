import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineCommand, defineEvents, defineState } from '../../src/index.ts';
import { givenStream } from '../../src/testing.ts';

const guest = defineEvents('guest', {
  Arrived: z.object({ room: z.string() }),
  Joined: z.object({ level: z.int() }),
  Left: z.object({}),
});
const arrived = (room: string) => ({ type: 'Arrived', payload: { room } }) as const;
const joined = { type: 'Joined', payload: { level: 2 } } as const;

test('a state is inferred from its initial value: values are of their kind, not of their value', async () => {
  const stay = defineState(
    guest,
    () => ({ member: false, nights: 0, room: 'none', at: { level: 1 }, rooms: ['none'] }),
    {
      Arrived: (state, { payload }) => ({ ...state, room: payload.room, rooms: [...state.rooms, payload.room] }),
      Joined: (state, { payload }) => ({
        ...state,
        member: true,
        nights: state.nights + 1,
        at: { level: payload.level },
      }),
    },
  );
  defineCommand({
    name: 'leave',
    input: z.object({}),
    state: stay,
    stream: () => 'g',
    decide(_, state) {
      expectTypeOf(state).toEqualTypeOf<{
        member: boolean;
        nights: number;
        room: string;
        at: { level: number };
        rooms: string[];
      }>();
      return state.member ? { type: 'Left', payload: {} } : [];
    },
  });
  const flag = defineState(guest, () => false, { Arrived: () => true, Left: () => false });
  expectTypeOf(flag.initial()).toEqualTypeOf<boolean>();
  await givenStream(guest, arrived('12')).thenState(flag, true);
  await givenStream(guest, arrived('12'), joined).thenState(stay, {
    member: true,
    nights: 1,
    room: '12',
    at: { level: 2 },
    rooms: ['none', '12'],
  });
});

test('a declared state keeps its literals, in handlers with and without parameters, also within', () => {
  type Stay =
    | { readonly status: 'Away' }
    | {
        readonly status: 'Here';
        readonly in: { readonly kind: 'room' | 'suite'; readonly doors: readonly ['open' | 'shut'] };
      };
  const stay = defineState(guest, (): Stay => ({ status: 'Away' }), {
    Arrived: () => ({ status: 'Here', in: { kind: 'room', doors: ['open'] } }),
    Joined: (state) => (state.status === 'Here' ? { ...state, in: { kind: 'suite', doors: ['shut'] } } : state),
    Left: (_, event) => (event.position > 0n ? { status: 'Away' } : { status: 'Away' }),
  });
  expectTypeOf(stay.initial()).toEqualTypeOf<Stay>();
  expect(stay.family).toBe(guest);
});

test('a handler that returns no state, or handles no event, is a compile error', () => {
  const declarations = [
    // @ts-expect-error a text for a boolean
    () => defineState(guest, () => ({ member: false }), { Joined: () => ({ member: 'yes' }) }),
    // @ts-expect-error a text for a boolean, in a handler with parameters
    () => defineState(guest, () => ({ member: false }), { Joined: (state) => ({ ...state, member: 'yes' }) }),
    // @ts-expect-error a missing member
    () => defineState(guest, () => ({ member: false, nights: 0 }), { Joined: () => ({ member: true }) }),
    // @ts-expect-error nothing
    () => defineState(guest, () => ({ member: false }), { Joined: () => {} }),
    // @ts-expect-error an event that the family does not define
    () => defineState(guest, () => ({ member: false }), { Joind: () => ({ member: true }) }),
    // @ts-expect-error a member of a payload that it does not have
    () => defineState(guest, () => ({ nights: 0 }), { Joined: (_, { payload }) => ({ nights: payload.nights }) }),
  ];
  expect(declarations).toHaveLength(6);
});
