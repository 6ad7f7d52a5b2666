import type { NewEventOf } from '../src/index.ts';
import { account, order } from './domain.ts';

/** The content of one append. Its events get the number from the ledger. */
export interface Draft {
  readonly parts: readonly Part[];
  /** Whether it expects the current version of its only stream. Other writers may be faster. */
  readonly exact: boolean;
  /** Whether it has an idempotency key, which allows to send it again if its outcome is unknown. */
  readonly keyed: boolean;
}

type Part =
  | { readonly family: typeof account; readonly streamId: string; events(append: number): NewEventOf<typeof account>[] }
  | { readonly family: typeof order; readonly streamId: string; events(append: number): NewEventOf<typeof order>[] };

// Few enough that rows change again and again; a fifth of all appends goes to five accounts.
const accounts = 300;
const hotAccounts = 5;

/** A random append: to one account, to an order, or to both at once. */
export function draftAppend(random: () => number): Draft {
  const kind = random();
  const keyed = random() < 0.5;
  if (kind < 0.7) return { parts: [onAccount(random)], exact: random() < 0.15, keyed };
  if (kind < 0.85) return { parts: [onOrder(random)], exact: false, keyed };
  return { parts: [onAccount(random), onOrder(random)], exact: false, keyed };
}

function onAccount(random: () => number): Part {
  const among = random() < 0.2 ? hotAccounts : accounts;
  const streamId = `account-${Math.floor(random() * among)}`;
  const draws = Array.from({ length: 1 + Math.floor(random() * 4) }, () => [random(), random(), random()] as const);
  return {
    family: account,
    streamId,
    events: (append) =>
      draws.map(([kind, size, poison], part): NewEventOf<typeof account> => {
        const amount = (size * 100).toFixed(2);
        if (kind < 0.12) return { type: 'Opened', payload: { append, part, owner: `owner-${Math.floor(size * 20)}` } };
        if (kind < 0.14) return { type: 'Closed', payload: { append, part } };
        if (kind < 0.5) return { type: 'Debited', payload: { append, part, amount } };
        if (poison < 0.006) return { type: 'Credited', payload: { append, part, amount, poison: 'account' } };
        if (poison > 0.9997) return { type: 'Credited', payload: { append, part, amount, poison: 'group' } };
        return { type: 'Credited', payload: { append, part, amount } };
      }),
  };
}

function onOrder(random: () => number): Part {
  const streamId = `order-${Math.floor(random() * 100_000)}`;
  const cancels = random() < 0.1;
  const customer = String(Math.floor(random() * 50));
  const lines = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
    product: String(Math.floor(random() * 30)),
    quantity: 1 + Math.floor(random() * 9),
  }));
  return {
    family: order,
    streamId,
    events: (append) => [
      { type: 'Placed', payload: { append, part: 0, customer, lines } },
      ...(cancels ? [{ type: 'Cancelled' as const, payload: { append, part: 1 } }] : []),
    ],
  };
}
