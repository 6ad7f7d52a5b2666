import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { Command } from '../../src/commands/define-command.ts';
import { defineCommand, defineEvents, defineState } from '../../src/index.ts';
import { givenEvents, givenStream } from '../../src/testing.ts';

const account = defineEvents('account', {
  Opened: z.object({ owner: z.string() }),
  Moved: z.object({ amount: z.int() }),
});
const note = defineEvents('note', { Written: z.object({ text: z.string() }) });
const accountState = defineState(account, () => ({ balance: 0 as number }), {
  Moved: ({ balance }, { payload }) => ({ balance: balance + payload.amount }),
});
const noteState = defineState(note, () => ({ texts: [] as readonly string[] }), {
  Written: ({ texts }, { payload }) => ({ texts: [...texts, payload.text] }),
});

const input = z.object({ from: z.string(), to: z.string(), amount: z.int() });
const moved = (amount: number) => ({ type: 'Moved', payload: { amount } }) as const;

/** What a program without types could declare. */
type Loose = (options: object) => Command;
const loosely = defineCommand as unknown as Loose;
const onOne = (options: object) =>
  loosely({ name: 'move', input: z.object({ id: z.string() }), state: accountState, stream: () => 'a', ...options });
const onTwo = (options: object) =>
  loosely({
    name: 'transfer',
    input,
    states: [accountState],
    streams: ({ from, to }: { from: string; to: string }) => [
      { state: accountState, streamId: from },
      { state: accountState, streamId: to },
    ],
    ...options,
  });
const decided = (command: Command, given: object = { from: 'a', to: 'b', amount: 1 }) =>
  givenEvents()
    .when(command, { id: 'a', ...given })
    .events();

describe('types of a command on several streams', () => {
  test('flow from the streams and from what is loaded into states, events and context', async () => {
    const command = defineCommand({
      name: 'transfer',
      input,
      states: [accountState, noteState],
      load: async ({ amount }) => ({ fee: amount / 10 }),
      streams: ({ from, to }) => [
        { state: accountState, streamId: from },
        { state: accountState, streamId: to },
        { state: noteState, streamId: `${from} to ${to}` },
      ],
      decide({ amount }, [from, to, notes], { loaded, streamVersions, now }) {
        expectTypeOf(from.balance).toEqualTypeOf<number>();
        expectTypeOf(to.balance).toEqualTypeOf<number>();
        expectTypeOf(notes.texts).toEqualTypeOf<readonly string[]>();
        expectTypeOf(loaded).toEqualTypeOf<{ fee: number }>();
        expectTypeOf(streamVersions).toEqualTypeOf<readonly [number, number, number]>();
        if (amount > from.balance) return [];
        return [
          [
            { type: 'Moved', payload: { amount: -amount } },
            { type: 'Moved', payload: { amount: -loaded.fee } },
          ],
          { type: 'Moved', payload: { amount } },
          [{ type: 'Written', payload: { text: now } }],
        ];
      },
    });
    expectTypeOf(command.name).toEqualTypeOf<'transfer'>();
    expect(command.families).toEqual([account, note]);
    expect(command.emits).toEqual(['Opened', 'Moved', 'Written']);
    const now = '2026-03-01T10:00:00.000Z';
    const given = givenEvents({ family: account, streamId: 'a', events: [moved(50)] });
    const decision = given.when(command, { from: 'a', to: 'b', amount: 20 }, { now });
    const written = { type: 'Written', payload: { text: now } };
    await decision.thenStreams([moved(-20), moved(-2)], [moved(20)], [written]);
    await decision.thenEvents(moved(-20), moved(-2), moved(20), written);
    await decision.thenState({ balance: 28 }, { balance: 20 }, { texts: [now] });
    await given.when(command, { from: 'b', to: 'a', amount: 20 }).thenNothing();
    await given
      .when(command, { from: 'a', to: 'b', amount: 20 }, { loaded: { fee: 3 } })
      .thenState({ balance: 27 }, { balance: 20 }, { texts: ['2026-01-01T00:00:00.000Z'] });
  });

  test('fit any number of streams', async () => {
    const sweep = defineCommand({
      name: 'sweep',
      input: z.object({ into: z.string(), from: z.array(z.string()) }),
      states: [accountState],
      streams: ({ into, from }) => [
        { state: accountState, streamId: into },
        ...from.map((streamId) => ({ state: accountState, streamId })),
      ],
      decide(_, [, ...swept]) {
        const sum = swept.reduce((total, { balance }) => total + balance, 0);
        return [moved(sum), ...swept.map(({ balance }) => moved(-balance))];
      },
    });
    await givenEvents(
      { family: account, streamId: 'b', events: [moved(5)] },
      { family: account, streamId: 'c', events: [moved(7)] },
    )
      .when(sweep, { into: 'a', from: ['b', 'c'] })
      .thenState({ balance: 12 }, { balance: 0 }, { balance: 0 });
  });

  test('refuse other states, other events and other numbers of lists', () => {
    const base = {
      name: 'transfer',
      input,
      states: [accountState],
      streams: ({ from, to }: { from: string; to: string }) =>
        [
          { state: accountState, streamId: from },
          { state: accountState, streamId: to },
        ] as const,
    } as const;
    const declarations = [
      // @ts-expect-error an event that the stream's family does not define
      () => defineCommand({ ...base, decide: () => [{ type: 'Written', payload: { text: '' } }, []] }),
      // @ts-expect-error the events of one stream only
      () => defineCommand({ ...base, decide: () => [[moved(1)]] }),
      // @ts-expect-error an asynchronous decision
      () => defineCommand({ ...base, decide: async () => [[], []] }),
      // @ts-expect-error a stream of an undeclared state
      () => defineCommand({ ...base, streams: () => [{ state: noteState, streamId: 'n' }], decide: () => [[]] }),
      // @ts-expect-error an event that it does not emit
      () => defineCommand({ ...base, emits: ['Opened'], decide: () => [[moved(1)], []] }),
    ];
    expect(declarations).toHaveLength(5);
  });
});

describe('a declaration is refused', () => {
  const decide = () => [];
  const messages: readonly (readonly [object, string])[] = [
    [
      { states: [accountState], streams: () => [], stream: () => 'a' },
      "'streams' goes with 'states'; remove 'state', 'events' and 'stream'.",
    ],
    [{ streams: () => [] }, "give 'states', a list of what defineState(events, initial, handlers) creates."],
    [{ states: [], streams: () => [] }, "give 'states', a list of"],
    [{ states: [account], streams: () => [] }, "give 'states', a list of"],
    [{ states: [accountState], stream: () => 'a' }, "'states' goes with 'streams'; give 'state' with 'stream'."],
    [{ states: [accountState], streams: 'a' }, "'streams' is a function."],
    [{ state: accountState, stream: () => 'a', load: {} }, "'load' is a function."],
    [
      { states: [accountState, noteState], streams: () => [], emits: ['Movd'] },
      "'emits' names 'Movd', which account, note does not define. Did you mean 'Moved'?",
    ],
  ];
  test.each(messages)('%o', (options, message) => {
    expect(() => loosely({ name: 'transfer', input, decide, ...options })).toThrow(
      `defineCommand('transfer'): ${message}`,
    );
  });
});

describe('nonsense is named:', () => {
  const event = moved(1);
  const hole = new Array(1);
  const shapes = 'Return an event, a list of events, or an empty list to change nothing.';
  const streamShapes = "Return a list of { state, streamId }, with states of the command's 'states'.";
  const found: readonly (readonly [string, Command, string])[] = [
    [
      'a decision without a return',
      onOne({ decide: () => {} }),
      `defineCommand('move'): 'decide' returned undefined. ${shapes}`,
    ],
    ['null', onOne({ decide: () => null }), `'decide' returned null. ${shapes}`],
    ['a text', onOne({ decide: () => 'Moved' }), `'decide' returned a string. ${shapes}`],
    ['an object', onOne({ decide: () => ({ payload: {} }) }), `'decide' returned an object without a type. ${shapes}`],
    ['a list of lists', onOne({ decide: () => [[event]] }), `'decide' returned a list without a type. ${shapes}`],
    ['a hole', onOne({ decide: () => hole }), `'decide' returned undefined. ${shapes}`],
    [
      'a promise',
      onOne({ decide: async () => event }),
      "'decide' returned a promise. 'decide' is synchronous; load asynchronous data in 'load'.",
    ],
    [
      'a promise that rejects',
      onOne({ decide: () => Promise.reject(new Error('unheard')) }),
      "'decide' returned a promise.",
    ],
    [
      'a list of promises',
      onOne({ decide: () => [Promise.resolve(event)] }),
      "'decide' returned a promise. Return an event",
    ],
    [
      'no stream',
      onOne({ stream: () => undefined, decide: () => event }),
      "'stream' returned undefined. Return the id of a stream, a string.",
    ],
    ['a promise of a stream', onOne({ stream: async () => 'a', decide: () => event }), "'stream' returned a promise."],
    [
      'a promise of several',
      onTwo({ decide: async () => [] }),
      "defineCommand('transfer'): 'decide' returned a promise.",
    ],
    [
      'one event for two streams',
      onTwo({ decide: () => event }),
      "'decide' returned an object. Return a list with the events of each stream, in the order of the streams.",
    ],
    [
      'too few lists',
      onTwo({ decide: () => [[event]] }),
      "'decide' returned events for 1 streams, but the command is about 2. Return one list for each stream, empty if nothing changes.",
    ],
    [
      'a missing list',
      onTwo({ decide: () => [[event], undefined] }),
      `'decide' returned for stream 'b' undefined. ${shapes}`,
    ],
    [
      'no list of streams',
      onTwo({ streams: () => 'a', decide: () => [] }),
      `'streams' returned a string. ${streamShapes}`,
    ],
    ['a promise of streams', onTwo({ streams: async () => [], decide: () => [] }), "'streams' returned a promise."],
    [
      'ids alone',
      onTwo({ streams: () => ['a'], decide: () => [] }),
      `'streams' returned at 0 a string without a declared state. ${streamShapes}`,
    ],
    [
      'another state',
      onTwo({ streams: () => [{ state: noteState, streamId: 'a' }], decide: () => [] }),
      "'streams' returned at 0 an object without a declared state.",
    ],
    [
      'no id',
      onTwo({ streams: () => [{ state: accountState }], decide: () => [] }),
      "'streams' returned at 0 undefined as 'streamId'.",
    ],
  ];
  test.each(found)('%s', async (_, command, message) => {
    const error = await decided(command).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'INVALID_DECISION', fields: { command: command.name } });
    expect((error as Error).message).toContain(message); // as matched above
  });

  test('an event that the family does not define', async () => {
    await expect(decided(onOne({ decide: () => ({ type: 'Movd', payload: {} }) }))).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT_TYPE',
      message: "defineCommand('move') decided 'Movd', which account does not define. Did you mean 'Moved'?",
      fields: { command: 'move', family: 'account', type: 'Movd' },
    });
    const written = { type: 'Written', payload: { text: 'x' } };
    const command = onTwo({ states: [accountState, noteState], decide: () => [[], written] });
    await expect(decided(command)).rejects.toThrow(
      "defineCommand('transfer') decided 'Written', which account does not define.",
    );
  });

  test('ids that depend on the input are bad input', async () => {
    const badInput = (message: string) => ({ code: 'BAD_USER_INPUT', message: expect.stringContaining(message) });
    const two = onTwo({ decide: () => [] });
    await expect(decided(two, { from: 'a', to: 'a', amount: 1 })).rejects.toMatchObject(
      badInput("The input of 'transfer' is not valid: (root): leads to the stream 'a' of account twice."),
    );
    await expect(decided(two, { from: 'a', to: '', amount: 1 })).rejects.toMatchObject(
      badInput("The input of 'transfer' is not valid: (root): leads to an empty stream id."),
    );
    await expect(decided(onOne({ stream: () => '', decide: () => event }))).rejects.toMatchObject(
      badInput("The input of 'move' is not valid: (root): leads to an empty stream id."),
    );
    await expect(decided(onTwo({ streams: () => [], decide: () => [] }))).rejects.toMatchObject(
      badInput("The input of 'transfer' is not valid: (root): leads to no stream."),
    );
  });
});

test('the history of one stream is too little for a command on several', async () => {
  const decision = givenStream(account, moved(1)).when(onTwo({ decide: () => [] }), { from: 'a', to: 'b', amount: 1 });
  await expect(decision.thenNothing()).rejects.toThrow(
    "'transfer' decides on 2 streams. Pass the history of each to givenEvents(…).when(…).",
  );
});
