import { type Decimal, decimal, defineImport, type NewEventOf } from '../../src/index.ts';
import { changeOf } from './bookings.ts';
import { type BookingType, bankAccount } from './events.ts';

/**
 * The bookings of the PKDD'99 "Berka" bank as JSON lines, in the order of the file, which is that of the bookings of each account.
 *
 * The file has the balance after each booking. Some balances differ by 0.10 from the balance before and the amount, because the old bank rounded
 * what it wrote. The difference is booked as a correction, so the balances are those of the old bank. Any other difference ends the import: a
 * booking is missing, or in the wrong place.
 */
export const berkaImport = defineImport({
  name: 'berka',
  description: "The bookings of the PKDD'99 Czech bank as JSON lines.",
  async *toAppends(lines) {
    const balances = new Map<string, Decimal>(); // of some thousand accounts
    for await (const { text } of lines) {
      const row = parseRow(text);
      const before = balances.get(row.account_id);
      const [booking, balance] = bookingOf(row, before ?? decimal(0));
      const opened = { type: 'AccountOpened', payload: { openedOn: booking.payload.bookedOn } } as const;
      const rounding = roundingOf(row, booking, balance);
      balances.set(row.account_id, decimal(row.balance));
      yield {
        family: bankAccount,
        streamId: row.account_id,
        events: [...(before ? [] : [opened]), booking, ...rounding],
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
  /** `PRIJEM` is a credit; `VYDAJ` and, in some rows, `VYBER` are debits. */
  readonly type: string;
  readonly operation: string | null;
  readonly amount: string;
  readonly balance: string;
  readonly k_symbol: string | null;
  readonly bank: string | null;
  readonly account: string | null;
}

type Booked = Exclude<NewEventOf<typeof bankAccount>, { readonly type: 'AccountOpened' | 'Corrected' }>;

/** The booking of a row, and the balance after it. */
function bookingOf(row: Row, before: Decimal): readonly [Booked, Decimal] {
  const balance = before.plus(decimal(row.amount).times(row.type === 'PRIJEM' ? 1 : -1));
  const payload = {
    bookingId: row.trans_id,
    bookedOn: `19${row.date.slice(0, 2)}-${row.date.slice(2, 4)}-${row.date.slice(4, 6)}`,
    amount: decimal(row.amount).toFixed(2),
    balance: balance.toFixed(2),
  };
  const type = operationOf(row);
  switch (type) {
    case 'TransferSent':
    case 'TransferReceived':
      return [{ type, payload: { ...payload, counterparty: `${row.bank}/${row.account}` } }, balance];
    case 'InterestPaid':
    case 'InterestCharged':
      return [{ type, payload: { ...payload, month: payload.bookedOn.slice(0, 7) } }, balance];
    default:
      return [{ type, payload }, balance];
  }
}

function operationOf({ trans_id, type, operation, k_symbol }: Row): Exclude<BookingType, 'Corrected'> {
  if (k_symbol === 'UROK') return 'InterestPaid';
  if (k_symbol === 'SANKC. UROK') return 'InterestCharged';
  if (k_symbol === 'SLUZBY') return 'FeeCharged';
  switch (operation) {
    case 'VKLAD':
      return 'Deposited';
    case 'VYBER':
    case 'VYBER KARTOU':
      return 'Withdrawn';
    case 'PREVOD NA UCET':
      return 'TransferSent';
    case 'PREVOD Z UCTU':
      return 'TransferReceived';
    default:
      throw new Error(`Booking ${trans_id}: a ${type} with the operation '${operation}' is unknown.`);
  }
}

const largestRounding = '0.10';

function roundingOf(row: Row, booking: Booked, balance: Decimal): NewEventOf<typeof bankAccount>[] {
  const difference = decimal(row.balance).minus(balance);
  if (difference.eq(0)) return [];
  if (difference.abs().gt(largestRounding))
    throw new Error(
      `Booking ${row.trans_id} of account ${row.account_id} leads to a balance of ${balance.toFixed(2)}, but the file says ${row.balance}.`,
    );
  const change = changeOf(booking);
  return [
    {
      type: 'Corrected',
      payload: {
        bookingId: `${row.trans_id}-rounding`,
        bookedOn: booking.payload.bookedOn,
        corrects: row.trans_id,
        correctsDay: booking.payload.bookedOn,
        operation: booking.type,
        was: change.toFixed(2),
        is: change.plus(difference).toFixed(2),
        balance: decimal(row.balance).toFixed(2),
      },
    },
  ];
}

/** Numbers stay the text of the file: an amount must not become a float on its way to a decimal. */
function parseRow(text: string): Row {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
}
