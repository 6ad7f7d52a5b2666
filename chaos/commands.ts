import { z } from 'zod';
import { type Command, defineCommand, defineState } from '../src/index.ts';
import { claim } from './claims.ts';
import { account } from './domain.ts';

/** What clients send: movements on one account. Like the traffic's, the events carry the append's number in the ledger. */
export const move: Command = defineCommand({
  name: 'move',
  input: z.object({
    accountId: z.string(),
    append: z.int(),
    movements: z.array(
      z.object({
        type: z.enum(['Opened', 'Credited', 'Debited']),
        amount: z.string(),
        poison: z.enum(['account']).optional(),
      }),
    ),
  }),
  state: defineState(account, () => ({ events: 0 }), {
    Opened: ({ events }) => ({ events: events + 1 }),
    Credited: ({ events }) => ({ events: events + 1 }),
    Debited: ({ events }) => ({ events: events + 1 }),
    Closed: ({ events }) => ({ events: events + 1 }),
  }),
  stream: ({ accountId }) => accountId,
  decide: ({ append, movements }) =>
    movements.map(({ type, amount, poison }, part) =>
      type === 'Opened'
        ? { type, payload: { append, part, owner: 'client' } }
        : { type, payload: { append, part, amount, ...(poison && type === 'Credited' ? { poison } : {}) } },
    ),
});

/** Clients claim unique values, too. */
export const claimValue: Command = defineCommand({
  name: 'claim',
  input: z.object({ claimId: z.string(), append: z.int(), value: z.string() }),
  events: claim,
  stream: ({ claimId }) => claimId,
  decide: ({ append, value }) => ({ type: 'Claimed', payload: { append, part: 0, value } }),
});
