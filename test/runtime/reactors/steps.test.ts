import { pino } from 'pino';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { EventPace } from '../../../src/events/event-pace.ts';
import {
  CommandRejected,
  defineCommand,
  defineReactor,
  type Reactor,
  type ReactorContext,
  type RecordedEvent,
} from '../../../src/index.ts';
import { react } from '../../../src/runtime/reactors/reaction.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account } from '../../support/sample-domain.ts';

const { db, log } = await databaseOfFile(account);
let streams = 0;

const pays = (name: string) =>
  defineCommand({
    name,
    input: z.object({ to: z.string(), amount: z.string() }),
    events: account,
    stream: ({ to }) => to,
    decide({ amount }) {
      if (amount === '13') throw new CommandRejected('13 is bad luck');
      return amount === '0' ? [] : { type: 'Credited', payload: { amount } };
    },
  });
const charge = pays('charge');
const chargeCard = pays('chargeCard');

type Workflow = (context: ReactorContext, to: string) => Promise<unknown>;

const reactorOf = (workflow: Workflow): Reactor =>
  defineReactor({
    name: 'payments',
    events: account,
    handle: { Opened: async ({ streamId }, context) => void (await workflow(context, `${streamId}-paid`)) },
  });

async function opened(): Promise<RecordedEvent> {
  const streamId = `s${++streams}`;
  const { events } = await log.append({
    family: account,
    streamId,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
  });
  return events[0] as RecordedEvent; // one was appended
}

/** One delivery of the event to this code. */
function deliver(event: RecordedEvent, workflow: Workflow, reactor = reactorOf(workflow)) {
  const { signal } = new AbortController();
  const waits = { outcomeOf: () => Promise.reject(new Error('no step of this test waits')) };
  const pace = new EventPace();
  return react({ reactor, db, log, waits, logger: pino({ level: 'silent' }), pace, signal }, event, 1);
}

/** The amounts that were paid for the event. */
async function paidFor({ streamId }: RecordedEvent): Promise<string[]> {
  const amounts: string[] = [];
  for await (const { payload } of log.readStream(account, `${streamId}-paid`))
    amounts.push((payload as { amount: string }).amount); // only Credited events are written there
  return amounts;
}

const ack = { kind: 'handled', result: 'ack' };

test('a step that would take the outcome of another input fails, and nothing after it runs, whatever the handler catches', async () => {
  for (const amount of ['1', '13', '0']) {
    const event = await opened();
    expect(await deliver(event, ({ execute }, to) => execute(charge, { to, amount }).catch(() => {}))).toEqual(ack);
    const paid = await paidFor(event);
    const afterwards = Promise.withResolvers<unknown>();
    const changed = await deliver(event, async ({ execute, signal }, to) => {
      await execute(charge, { to, amount: '2' }).catch(() => {});
      expect(signal.aborted).toBe(true);
      afterwards.resolve(execute(chargeCard, { to, amount: '3' }).catch((error: unknown) => error));
    });
    expect(changed).toMatchObject({
      kind: 'failed',
      error: {
        code: 'STEP_CHANGED',
        message: expect.stringMatching(
          `^payments: step 'charge' of 'Opened' at position ${event.position} \\(stream '${event.streamId}'\\) has run as 'charge' with another input than 'charge' has now\\. Nothing was executed\\.`,
        ),
        fields: {
          reactor: 'payments',
          streamId: event.streamId,
          position: event.position.toString(),
          eventId: event.id,
          step: 'charge',
          command: 'charge',
          storedCommand: 'charge',
        },
      },
    });
    expect(await afterwards.promise).toMatchObject({ code: 'STEP_CHANGED' });
    expect(await paidFor(event)).toEqual(paid);
    // The order of an input's members does not matter.
    expect(await deliver(event, ({ execute }, to) => execute(charge, { amount, to }).catch(() => {}))).toEqual(ack);
  }
});

test('a named step keeps its outcome when the order of the steps changes, and when its command is renamed', async () => {
  const event = await opened();
  await deliver(event, async ({ execute }, to) => {
    await execute(charge, { to, amount: '1' }, { step: 'first' });
    await execute(charge, { to, amount: '2' }, { step: 'second' });
  });
  const outcomes: unknown[] = [];
  const redelivered = await deliver(event, async ({ execute }, to) => {
    for (const [command, amount, step] of [
      [charge, '2', 'second'],
      [charge, '3', 'between'],
      [chargeCard, '1', 'first'],
    ] as const)
      outcomes.push((await execute(command, { to, amount }, { step })).streamVersion);
  });
  expect(redelivered).toEqual(ack);
  expect(outcomes).toEqual([2, 3, 1]);
  expect(await paidFor(event)).toEqual(['1', '2', '3']);
  const renamed = await deliver(event, ({ execute }, to) =>
    execute(chargeCard, { to, amount: '9' }, { step: 'first' }),
  );
  expect(renamed).toMatchObject({
    kind: 'failed',
    error: {
      code: 'STEP_CHANGED',
      message: expect.stringContaining("has run as 'charge' with another input than 'chargeCard' has now"),
      fields: { step: 'first', command: 'chargeCard', storedCommand: 'charge' },
    },
  });
  expect(await paidFor(event)).toEqual(['1', '2', '3']);
});

test('a command that is executed more than once is named each time, and each name is used once', async () => {
  const refused = async (workflow: Workflow) => {
    const event = await opened();
    const outcome = await deliver(event, async (context, to) => {
      await workflow(context, to).catch(() => {});
    });
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'INVALID_STEP', fields: { reactor: 'payments' } } });
    return [(outcome as { error: Error }).error.message.replace(/^.* can't run: /, ''), (await paidFor(event)).length];
  };
  const one = { amount: '1' };
  const naming = `'charge' is executed more than once, and not every execution has a name. Name each of them: execute(charge, input, { step: 'first' }).`;
  expect(
    await refused(async ({ execute }, to) => {
      await execute(charge, { to, ...one });
      await execute(charge, { to, ...one });
    }),
  ).toEqual([naming, 1]);
  expect(
    await refused(async ({ execute }, to) => {
      await execute(charge, { to, ...one });
      await execute(charge, { to, ...one }, { step: 'second' });
    }),
  ).toEqual([naming, 1]);
  expect(
    await refused(async ({ execute }, to) => {
      await execute(charge, { to, ...one }, { step: 'pay' });
      await execute(chargeCard, { to, ...one }, { step: 'pay' });
    }),
  ).toEqual(["two steps are named 'pay'. Give each step a name of its own.", 1]);
  const expected = "'step' is a name of 1 to 200 characters, such as 'charge'; found";
  expect(await refused(({ execute }, to) => execute(charge, { to, ...one }, { step: ' ' }))).toEqual([
    `${expected} ' '.`,
    0,
  ]);
  expect(await refused(({ execute }, to) => execute(charge, { to, ...one }, { step: 7 as never }))).toEqual([
    `${expected} 7.`,
    0,
  ]);
});

test('steps that get a name while their event is under way keep their outcomes', async () => {
  const event = await opened();
  // The second execution has no name, and fails.
  const unnamed = await deliver(event, async ({ execute }, to) => {
    await execute(charge, { to, amount: '5' });
    await execute(charge, { to, amount: '5' });
  });
  expect(unnamed).toMatchObject({ error: { code: 'INVALID_STEP' } });
  for (let delivery = 0; delivery < 2; delivery++) {
    const named = await deliver(event, async ({ execute }, to) => {
      await execute(charge, { to, amount: '4' }, { step: 'new' });
      await execute(charge, { to, amount: '5' }, { step: 'first' });
      await execute(charge, { to, amount: '5' }, { step: 'second' });
    });
    expect(named).toEqual(ack);
    expect(await paidFor(event)).toEqual(['5', '4', '5']);
  }
});

test('a client that guesses the key of a step can not decide its outcome', async () => {
  const event = await opened();
  await log.append({
    family: account,
    streamId: `${event.streamId}-paid`,
    events: [{ type: 'Credited', payload: { amount: '1000' } }],
    idempotencyKey: `charge:payments/${event.id}/1`,
    idempotencyFingerprint: 'of a client',
  });
  const outcome = await deliver(event, ({ execute }, to) => execute(charge, { to, amount: '1' }));
  expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'BAD_USER_INPUT' } });
});

test('a reactor that feeds itself is stopped at the end of the longest chain, also if another one is in between', async () => {
  let reactions = 0;
  const feeding = (name: string, maxChain?: number) =>
    defineReactor({
      name,
      events: account,
      handle: {
        Credited: async ({ streamId }, { execute }) => {
          reactions++;
          await execute(charge, { to: `${streamId}.`, amount: '1' }, { metadata: { reactions: { [name]: 0 } } });
        },
      },
      ...(maxChain === undefined ? {} : { maxChain }),
    });
  const [ping, pong] = [feeding('ping'), feeding('pong', Number.POSITIVE_INFINITY)];
  const { events } = await log.append({
    family: account,
    streamId: 'chain',
    events: [{ type: 'Credited', payload: { amount: '1' } }],
  });
  let event = events[0] as RecordedEvent; // one was appended
  for (let reaction = 0; ; reaction++) {
    const outcome = await deliver(event, async () => {}, reaction % 2 === 0 ? ping : pong);
    if (outcome.kind === 'failed') {
      expect(outcome.error).toMatchObject({
        code: 'REACTION_LOOP',
        message: expect.stringMatching(
          `^100 reactions of ping, each caused by the one before it, have led to 'Credited' at position ${event.position} `,
        ),
        fields: { reactor: 'ping', reactions: 100 },
      });
      break;
    }
    for await (const written of log.readStream(account, `${event.streamId}.`)) event = written;
  }
  expect(reactions).toBe(200);
  expect(event.metadata.reactions).toEqual({ ping: 100, pong: 100 });
});

test('a reactor that declares its commands executes no other', async () => {
  const reactor = defineReactor({
    name: 'payments',
    events: account,
    commands: [chargeCard],
    handle: {
      Opened: async ({ streamId }, { execute }) => void (await execute(charge, { to: streamId, amount: '1' })),
    },
  });
  expect(await deliver(await opened(), async () => {}, reactor)).toMatchObject({
    error: {
      code: 'INVALID_STEP',
      message: expect.stringContaining("the 'commands' of the reactor do not name 'charge'. Add it there."),
    },
  });
});
