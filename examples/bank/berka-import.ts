import { decimal, defineImport } from '../../src/index.ts';
import { bankAccount } from './events.ts';

/** The bookings of the PKDD'99 "Berka" bank as JSON lines, one event each, in the order of the file. */
export const berkaImport = defineImport({
  name: 'berka',
  description: "The bookings of the PKDD'99 Czech bank as JSON lines.",
  async *toAppends(lines) {
    for await (const { text } of lines) {
      const row = parseRow(text);
      yield {
        family: bankAccount,
        streamId: row.account_id,
        events: [
          {
            type: row.type === 'PRIJEM' ? 'Credited' : 'Debited', // VYDAJ and, in some rows, VYBER
            payload: {
              bookingId: row.trans_id,
              bookedOn: `19${row.date.slice(0, 2)}-${row.date.slice(2, 4)}-${row.date.slice(4, 6)}`,
              operation: row.operation,
              amount: decimal(row.amount).toFixed(),
            },
          },
        ],
        idempotencyKey: `berka:${row.trans_id}`,
      };
    }
  },
});

interface Row {
  readonly trans_id: string;
  readonly account_id: string;
  /** YYMMDD */
  readonly date: string;
  readonly type: string;
  readonly operation: string | null;
  readonly amount: string;
}

/** Numbers stay the text of the file: an amount must not become a float on its way to a decimal. */
function parseRow(text: string): Row {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
}
