import { z } from 'zod';
import { CommandRejected, decimal, defineCommand, defineReactor, defineState } from '../../src/index.ts';
import { accountId, amount, depositForTransfer, refundTransfer, withdrawForTransfer } from './account.ts';
import { transfer } from './events.ts';

interface Transfer {
  readonly status: 'None' | 'Requested' | 'Completed' | 'Failed';
}

const transferState = defineState(transfer, (): Transfer => ({ status: 'None' }), {
  TransferRequested: () => ({ status: 'Requested' }),
  TransferCompleted: () => ({ status: 'Completed' }),
  TransferFailed: () => ({ status: 'Failed' }),
});

const transferId = z.string().min(1).max(100);

export const requestTransfer = defineCommand({
  name: 'requestTransfer',
  description: 'Requests a transfer from one account to another. It runs in the background.',
  input: z.object({ transferId, from: accountId, to: accountId, amount }),
  state: transferState,
  stream: (input) => input.transferId,
  decide({ transferId, from, to, amount }, { status }) {
    if (status !== 'None') throw new CommandRejected(`Transfer '${transferId}' exists already.`);
    if (from === to) throw new CommandRejected('A transfer is between two accounts.');
    return { type: 'TransferRequested', payload: { from, to, amount: decimal(amount).toFixed(2) } };
  },
});

const completeTransfer = defineCommand({
  name: 'completeTransfer',
  input: z.object({ transferId }),
  events: transfer,
  stream: (input) => input.transferId,
  decide: () => ({ type: 'TransferCompleted', payload: {} }),
});

const failTransfer = defineCommand({
  name: 'failTransfer',
  input: z.object({ transferId, reason: z.string() }),
  events: transfer,
  stream: (input) => input.transferId,
  decide: ({ reason }) => ({ type: 'TransferFailed', payload: { reason } }),
});

/**
 * Moves the money, over three streams, as a list of steps. Each step runs once, wherever a process ends in between: then the handler runs again
 * from its start, and earlier steps return their stored results. A refusal is stored too, so a transfer that
 * was compensated can't succeed later.
 */
export const moneyTransfers = defineReactor({
  name: 'money_transfers',
  events: transfer,
  from: 'beginning',
  concurrency: 20,
  onError: 'dead-letter',
  handle: {
    async TransferRequested({ streamId: transferId, payload: { from, to, amount } }, { execute }) {
      const withdrawn = await refusal(execute(withdrawForTransfer, { accountId: from, amount, transferId }));
      if (withdrawn !== null) {
        await execute(failTransfer, { transferId, reason: withdrawn });
        return;
      }
      const deposited = await refusal(execute(depositForTransfer, { accountId: to, amount, transferId }));
      if (deposited !== null) {
        await execute(refundTransfer, { accountId: from, amount, transferId });
        await execute(failTransfer, { transferId, reason: deposited });
        return;
      }
      await execute(completeTransfer, { transferId });
    },
  },
});

/** Why a step was refused; null if it succeeded. Other errors are rethrown, and the handler is retried. */
async function refusal(step: Promise<unknown>): Promise<string | null> {
  try {
    await step;
    return null;
  } catch (error) {
    if (error instanceof CommandRejected) return error.message;
    throw error;
  }
}
