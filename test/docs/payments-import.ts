import { z } from 'zod';
import { decimal, defineEvents, defineImport } from '../../src/index.ts';

/** The code of the page about imports. */
export const account = defineEvents('account', {
  Paid: z.object({ amount: z.string(), paidOn: z.string() }),
});

export const paymentsImport = defineImport({
  name: 'payments',
  description: 'The payments of the old system, one JSON object a line.',
  async *toAppends(lines) {
    for await (const { text } of lines) {
      const row = parseExactly(text);
      yield {
        family: account,
        streamId: row.accountId,
        events: [{ type: 'Paid', payload: { amount: decimal(row.amount).toFixed(2), paidOn: row.date } }],
        idempotencyKey: `payments:${row.id}`,
      };
    }
  },
});

interface PaymentRow {
  readonly id: string;
  readonly accountId: string;
  readonly amount: string;
  readonly date: string;
}

/** Numbers stay the text of the file. */
function parseExactly(text: string): PaymentRow {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
}
