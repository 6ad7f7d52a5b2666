import { z } from 'zod';
import { type Command, defineCommand, defineState } from '../src/index.ts';
import { account } from './domain.ts';

/** The command that clients send: movements on one account. Like the traffic's, the events carry the append's number in the ledger. */
export const move: Command = defineCommand({
  name: 'move',
  input: z.object({
    accountId: z.string(),
    append: z.int(),
    movements: z.array(z.object({ type: z.enum(['Opened', 'Credited', 'Debited']), amount: z.string() })),
  }),
  state: defineState(account, () => ({ events: 0 }), {
    Opened: ({ events }) => ({ events: events + 1 }),
    Credited: ({ events }) => ({ events: events + 1 }),
    Debited: ({ events }) => ({ events: events + 1 }),
    Closed: ({ events }) => ({ events: events + 1 }),
  }),
  stream: ({ accountId }) => accountId,
  decide: ({ append, movements }) =>
    movements.map(({ type, amount }, part) =>
      type === 'Opened'
        ? { type, payload: { append, part, owner: 'client' } }
        : { type, payload: { append, part, amount } },
    ),
});
