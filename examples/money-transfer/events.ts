import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

/** Exact decimals with two digits. */
const amount = z.string().regex(/^\d{1,12}\.\d{2}$/);

/** One stream per account. */
export const account = defineEvents('account', {
  AccountOpened: z.object({ owner: z.string() }),
  MoneyDeposited: z.object({ amount, transferId: z.string().optional() }),
  MoneyWithdrawn: z.object({ amount, transferId: z.string() }),
  AccountClosed: z.object({}),
});

/** One stream per transfer: the request, and how it ended. */
export const transfer = defineEvents('transfer', {
  TransferRequested: z.object({ from: z.string(), to: z.string(), amount }),
  TransferCompleted: z.object({}),
  TransferFailed: z.object({ reason: z.string() }),
});
