import { type Decimal, decimal, defineProjection, type PayloadOf } from '../../src/index.ts';
import { accountBalanceV1 } from './account-balance.v1.ts';
import { type Booking, bankAccount } from './events.ts';
import { operationTotalsV1 } from './operation-totals.v1.ts';
import { turnoverByDayV1 } from './turnover-by-day.v1.ts';

// The sample's read models again, event by event: `proveEqual` compares their SQL with these.

type Correction = PayloadOf<typeof bankAccount, 'Corrected'>;

const zero = decimal(0);
const changeOf = ({ was, is }: Correction) => decimal(is).minus(was);

export const operationTotalsByEvolve = defineProjection({
  name: 'operation_totals',
  version: 2,
  events: bankAccount,
  table: operationTotalsV1.columns,
  key: ({ payload }) => payload.operation ?? 'none',
  evolve: {
    Credited: (row, { payload }) => withBooking(row, payload, decimal(payload.amount)),
    Debited: (row, { payload }) => withBooking(row, payload, decimal(payload.amount).times(-1)),
    Corrected: (row, { payload }) => ({
      bookings: row?.bookings ?? 0n,
      amount: changeOf(payload).plus(row?.amount ?? zero),
      largest: row?.largest ?? null,
      lastBookedOn: later(row?.lastBookedOn, payload.bookedOn),
    }),
  },
});

function withBooking(
  row: { bookings: bigint; amount: Decimal; largest: Decimal | null; lastBookedOn: string } | null,
  { amount, bookedOn }: Booking,
  signed: Decimal,
) {
  return {
    bookings: (row?.bookings ?? 0n) + 1n,
    amount: signed.plus(row?.amount ?? zero),
    largest: row?.largest?.gt(amount) ? row.largest : decimal(amount),
    lastBookedOn: later(row?.lastBookedOn, bookedOn),
  };
}

function later(one: string | undefined, other: string): string {
  return one !== undefined && one > other ? one : other;
}

type Day = {
  readonly bookings: number;
  readonly credited: Decimal;
  readonly debited: Decimal;
  readonly corrections: number;
};

const emptyDay: Day = { bookings: 0, credited: zero, debited: zero, corrections: 0 };

export const turnoverByDayByEvolve = defineProjection({
  name: 'turnover_by_day',
  version: 2,
  events: bankAccount,
  table: turnoverByDayV1.columns,
  key: ({ payload }) => payload.bookedOn,
  evolve: {
    Credited: (row, { payload, recordedAt }) => ({
      ...booked(row ?? emptyDay, decimal(payload.amount), 1),
      bookings: (row?.bookings ?? 0) + 1,
      lastRecordedAt: recordedAt,
    }),
    Debited: (row, { payload, recordedAt }) => ({
      ...booked(row ?? emptyDay, decimal(payload.amount).times(-1), 1),
      bookings: (row?.bookings ?? 0) + 1,
      lastRecordedAt: recordedAt,
    }),
    Corrected: (row, { payload, recordedAt }) => ({
      ...booked(booked(row ?? emptyDay, decimal(payload.was), -1), decimal(payload.is), 1),
      corrections: (row?.corrections ?? 0) + 1,
      lastRecordedAt: recordedAt,
    }),
  },
});

/** An amount on its side of the day: booked (1), or reversed (-1). */
function booked(row: Day, amount: Decimal, sign: 1 | -1): Day {
  const change = amount.abs().times(sign);
  return {
    bookings: row.bookings,
    corrections: row.corrections,
    credited: amount.gt(0) ? row.credited.plus(change) : row.credited,
    debited: amount.lt(0) ? row.debited.plus(change) : row.debited,
  };
}

type Account = {
  readonly balance: Decimal;
  readonly bookings: number;
  readonly corrections: number;
  readonly corrected: Decimal;
  readonly firstBookingId: string | null;
  readonly lastBookingId: string | null;
};

const newAccount: Account = {
  balance: zero,
  bookings: 0,
  corrections: 0,
  corrected: zero,
  firstBookingId: null,
  lastBookingId: null,
};

export const accountBalanceByEvolve = defineProjection({
  name: 'account_balance',
  version: 2,
  events: bankAccount,
  table: accountBalanceV1.columns,
  key: (event) => event.streamId,
  evolve: {
    Credited: (row, { payload }) => moved(row ?? newAccount, payload.bookingId, decimal(payload.amount)),
    Debited: (row, { payload }) => moved(row ?? newAccount, payload.bookingId, decimal(payload.amount).times(-1)),
    Corrected: (row, { payload }) => {
      const account = row ?? newAccount;
      return {
        ...account,
        balance: account.balance.plus(changeOf(payload)),
        corrections: account.corrections + 1,
        corrected: account.corrected.plus(changeOf(payload)),
      };
    },
  },
});

function moved({ balance, bookings, ...account }: Account, bookingId: string, change: Decimal) {
  return {
    ...account,
    balance: balance.plus(change),
    bookings: bookings + 1,
    firstBookingId: account.firstBookingId ?? bookingId,
    lastBookingId: bookingId,
  };
}
