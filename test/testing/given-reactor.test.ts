import { expect, test } from 'vitest';
import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineReactor, defineState } from '../../src/index.ts';
import { givenReactor } from '../../src/testing.ts';

const transfer = defineEvents('transfer', {
  TransferRequested: z.object({ from: z.string(), to: z.string(), amount: z.string() }),
  Moved: z.object({ amount: z.string() }),
  TransferFailed: z.object({ reason: z.string() }),
});
const moving = (name: string) =>
  defineCommand({
    name,
    input: z.object({ accountId: z.string(), amount: z.string() }),
    events: transfer,
    stream: ({ accountId }) => accountId,
    decide: ({ amount }) => ({ type: 'Moved', payload: { amount } }),
  });
const [withdraw, deposit, refund] = [moving('withdraw'), moving('deposit'), moving('refund')];
const failTransfer = defineCommand({
  name: 'failTransfer',
  input: z.object({ transferId: z.string(), reason: z.string() }),
  events: transfer,
  stream: ({ transferId }) => transferId,
  decide: ({ reason }) => ({ type: 'TransferFailed', payload: { reason } }),
});
const moneyTransfers = defineReactor({
  name: 'money_transfers',
  events: transfer,
  handle: {
    async TransferRequested({ streamId: transferId, payload: { from, to, amount } }, { execute }) {
      await execute(withdraw, { accountId: from, amount });
      try {
        await execute(deposit, { accountId: to, amount });
      } catch (error) {
        if (!(error instanceof CommandRejected)) throw error;
        await execute(refund, { accountId: from, amount });
        await execute(failTransfer, { transferId, reason: error.message });
      }
    },
  },
});
const requested = { type: 'TransferRequested', payload: { from: 'a', to: 'b', amount: '5.00' } } as const;
const append = { family: transfer, streamId: 't1', events: [requested] };
const ofA = { accountId: 'a', amount: '5.00' };
const ofB = { ...ofA, accountId: 'b' };

test('a workflow is tested by its steps: as outcomes are given, it goes on or compensates', async () => {
  const names = async (given: ReturnType<typeof givenReactor>) =>
    (await given.when(append).steps()).map(({ command }) => command.name);
  const workflow = givenReactor(moneyTransfers);
  expect(await names(workflow)).toEqual(['withdraw', 'deposit']);
  const compensating = workflow.where(deposit, new CommandRejected('There is no such account.'));
  expect(await names(compensating)).toEqual(['withdraw', 'deposit', 'refund', 'failTransfer']);
  const reaction = compensating.when(append);
  await reaction.thenSteps(
    { command: withdraw, input: ofA },
    { command: deposit, input: ofB },
    { command: refund, input: ofA },
    { command: failTransfer, input: { transferId: 't1', reason: 'There is no such account.' } },
  );
  await reaction.thenReplayable();
  await reaction.thenResults('ack');
  await expect(reaction.thenSteps({ command: withdraw, input: ofA })).rejects.toThrow(/deposit/);
});

const note = defineEvents('note', { Written: z.object({ text: z.string() }), Read: z.object({}) });
const written = (text: string) => ({ type: 'Written', payload: { text } }) as const;
const write = defineCommand({
  name: 'write',
  input: z.object({ text: z.string() }),
  events: note,
  stream: ({ text }) => `copy of ${text}`,
  decide: ({ text }) => written(text),
});
const given = (...texts: readonly string[]) => ({ family: note, streamId: 'n', events: texts.map(written) });

test('a handler reads the state of a stream after its event', async () => {
  const texts = defineState(note, () => '', { Written: (before, { payload }) => before + payload.text });
  const reader = defineReactor({
    name: 'reader',
    events: note,
    async handle(_, { execute, stateAfter }) {
      await execute(write, { text: `${await stateAfter(texts)} ${await stateAfter(texts, 'm')}` });
    },
  });
  const others = { family: note, streamId: 'm', events: [written('x'), written('y')] };
  await givenReactor(reader)
    .when(given('a', 'b'), others)
    .thenSteps(...['a ', 'ab ', 'x x', 'xy xy'].map((text) => ({ command: write, input: { text } })));
});

test('events of a step, and outcomes by input and step, reach the handler', async () => {
  const copier = defineReactor({
    name: 'copier',
    events: note,
    handle: {
      async Written({ payload: { text } }, { execute, messageId, attempt }) {
        const { events, streamId, streamVersion } = await execute(write, { text }, { step: 'copy' });
        expect([messageId.startsWith('copier/'), attempt]).toEqual([true, 1]);
        await execute(write, {
          text: `${streamId} ${streamVersion} ${JSON.stringify(events.map(({ payload }) => payload))}`,
        });
        return text === 'b' ? 'skip' : undefined;
      },
    },
  });
  const reaction = givenReactor(copier)
    .where(write, (input, step) => (step === 'copy' ? [written(`${(input as { text: string }).text}!`)] : []))
    .when(given('a', 'b'));
  await reaction.thenSteps(
    { command: write, input: { text: 'a' }, step: 'copy' },
    { command: write, input: { text: 'copy of a 1 [{"text":"a!"}]' } },
    { command: write, input: { text: 'b' }, step: 'copy' },
    { command: write, input: { text: 'copy of b 1 [{"text":"b!"}]' } },
  );
  await reaction.thenResults('ack', 'skip');
  await givenReactor(copier)
    .when({ family: note, streamId: 'n', events: [{ type: 'Read', payload: {} }] })
    .thenResults();
  const invalid = givenReactor(copier).where(write, [{ type: 'Written', payload: { text: 1 } }]);
  await invalid.when(given('a')).thenFails(/The payload of note's 'Written' is not valid/);
});

test('a handler that fails is expected to fail, or fails the test', async () => {
  const failing = defineReactor({
    name: 'failing',
    events: note,
    handle: async ({ position }, { execute }) => {
      if (position === 2n) throw new Error('no second one');
      await execute(write, { text: position === 3n ? 3 : 'x' });
    },
  });
  const reaction = givenReactor(failing).when(given('a', 'b'));
  await reaction.thenFails('no second one');
  await reaction.thenFails(/second/);
  await expect(reaction.thenFails('another')).rejects.toThrow('no second one');
  await expect(reaction.steps()).rejects.toThrow('no second one');
  await expect(givenReactor(failing).when(given('a')).thenFails()).rejects.toThrow('Expected failing to fail');
});

test('steps need names if a command is executed twice, and valid inputs', async () => {
  const repeating = (inputs: readonly unknown[], step?: string) =>
    defineReactor({
      name: 'repeating',
      events: note,
      async handle(_, { execute }) {
        for (const input of inputs) await execute(write, input, step === undefined ? {} : { step });
      },
    });
  const run = (...args: Parameters<typeof repeating>) => givenReactor(repeating(...args)).when(given('a'));
  await run([{ text: 'x' }, { text: 'y' }]).thenFails(/repeating executes two steps 'write' for one event/);
  await run([{ text: 'x' }, { text: 'y' }], 'again').thenFails(/two steps 'again'/);
  await run([{ text: 1 }]).thenFails(/The input of 'write' is not valid: text/);
});

test('a workflow is tested with its waits: events, timeouts and times, each step once', async () => {
  const reminder = defineReactor({
    name: 'reminder',
    events: note,
    waitsFor: { Written: ({ payload }) => payload.text },
    handle: {
      async Read({ streamId: key }, { execute, wait, signal }) {
        await execute(write, { text: 'begins' }, { step: 'first' });
        const answer = await wait.for('Written', { key, timeout: 1000 });
        const second = await wait.for('Written', { key, step: 'again', timeout: 1000 });
        await wait.until('2026-01-02T00:00:00Z');
        signal.throwIfAborted();
        await execute(write, { text: `${answer?.streamId} ${second?.streamId}` });
      },
    },
  });
  const read = { family: note, streamId: 'n', events: [{ type: 'Read', payload: {} }] } as const;
  const answer = (streamId: string) => ({ family: note, streamId, events: [written('n')] });
  const begins = { command: write, input: { text: 'begins' }, step: 'first' };
  const reading = givenReactor(reminder).when(answer('too early'), read);
  await reading.thenWaits({ for: 'Written', key: 'n', timeout: 1000 });
  await reading.thenResults();
  const timedOut = reading.whenTimePasses(1500).whenEvents(answer('in time')).whenTimePasses(86_400_000);
  await timedOut.thenSteps(begins, { command: write, input: { text: 'undefined in time' } });
  await timedOut.thenResults('ack');
  const answered = reading.whenEvents(answer('first'), answer('second'));
  await answered.thenWaits({ until: '2026-01-02T00:00:00Z' });
  await answered.thenSteps(begins);
  await answered.whenTimePasses(86_400_000).thenSteps(begins, { command: write, input: { text: 'first second' } });
  await answered.whenTimePasses(86_400_000).thenReplayable();
  await expect(answered.thenWaits()).rejects.toThrow(/2026-01-02/);

  let inputs = 0;
  const changing = defineReactor({
    name: 'changing',
    events: note,
    async handle(_, { execute, wait }) {
      await execute(write, { text: String(++inputs) });
      await wait.until('2026-01-01T00:00:01Z');
    },
  });
  await givenReactor(changing)
    .when(read)
    .whenTimePasses(1000)
    .thenFails(/changing: step 'write' of 'Read' at position 1/);
});

const realDate = Date;
test.each<[string, () => string, string]>([
  [
    'the day',
    () => new Date().toISOString().slice(0, 10),
    'executes other steps if the clock is moved. It reads the clock',
  ],
  [
    'the time zone',
    () => String(new Date('2026-01-01T00:00:00Z').getDate()),
    'executes other steps in another time zone.',
  ],
  ['the language', () => (0.5).toLocaleString(), 'executes other steps in another language.'],
])('a workflow is not replayable if a step depends on %s', async (_, text, message) => {
  const dated = defineReactor({
    name: 'dated',
    events: note,
    async handle(event, { execute }) {
      await Promise.resolve();
      await execute(write, { text: `${event.id} ${text()}` });
    },
  });
  const reaction = givenReactor(dated).when(given('a'));
  await reaction.thenResults('ack');
  // At once: one of them must not undo the changes of the other.
  const outcomes = await Promise.allSettled([reaction.thenReplayable(), reaction.thenReplayable()]);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining(`dated ${message}`) },
    });
  expect(Date).toBe(realDate);
});
