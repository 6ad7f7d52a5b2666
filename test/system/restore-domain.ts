import { z } from 'zod';
import {
  decimal,
  defineCommand,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type Reactor,
  t,
} from '../../src/index.ts';
import { account } from '../support/sample-domain.ts';

/** The payload that the code of {@link doubtful} fails on, until it is fixed. */
export const poison = '66.66';

/** Keeps the events that it fails on, and later events of the same row. */
export const doubtful = (isMended: boolean) =>
  defineProjection({
    name: 'doubtful',
    version: 1,
    events: account,
    onError: 'dead-letter',
    table: { accountId: t.text().primaryKey(), credits: t.integer(), amount: t.decimal(20, 2) },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, { payload }) => {
        if (payload.amount === poison && !isMended) throw new Error('poison');
        return { credits: (row?.credits ?? 0) + 1, amount: decimal(payload.amount).plus(row?.amount ?? 0) };
      },
    },
  });

export const greeting = defineEvents('greeting', {
  Greeted: z.object({ opened: z.string(), step: z.enum(['first', 'second']) }),
});

const greet = defineCommand({
  name: 'greet',
  input: z.object({ opened: z.string(), step: z.enum(['first', 'second']) }),
  state: defineState(greeting, () => null, {}),
  stream: ({ opened }) => opened,
  decide: (input) => ({ type: 'Greeted', payload: input }),
});

/** Two steps for each account that is opened; between them it waits for the gate. */
export const greeter = (gate: Promise<void>): Reactor =>
  defineReactor({
    name: 'greeter',
    events: account,
    from: 'beginning',
    concurrency: 4,
    timeout: 3_600_000,
    handle: {
      Opened: async ({ id }, { execute }) => {
        await execute(greet, { opened: id, step: 'first' }, { step: 'first' });
        await gate;
        await execute(greet, { opened: id, step: 'second' }, { step: 'second' });
      },
    },
  });
