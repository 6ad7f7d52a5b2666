import { type Decimal, decimal, defineProjection } from '../../src/index.ts';
import { changeOf, everyBooking } from './bookings.ts';
import { type BookingEvent, bankAccount } from './events.ts';
import { operationTotalsV1 } from './operation-totals.v1.ts';
import { turnoverByDayV1 } from './turnover-by-day.v1.ts';

// Read models in SQL again, event by event: `proveEqual` compares both forms. `account@1` is that of `account_balance@1`.

const zero = decimal(0);

type Total = {
  readonly bookings: bigint;
  readonly amount: Decimal;
  readonly largest: Decimal | null;
  readonly lastBookedOn: string;
};

export const operationTotalsByEvolve = defineProjection({
  name: 'operation_totals',
  version: 2,
  events: bankAccount,
  table: operationTotalsV1.columns,
  key: (event) => ('operation' in event.payload ? event.payload.operation : event.type),
  evolve: everyBooking((row: Total | null, event: BookingEvent) => {
    const { payload } = event;
    const booked = 'amount' in payload ? decimal(payload.amount) : null;
    const largest = row?.largest ?? null;
    return {
      bookings: (row?.bookings ?? 0n) + (booked ? 1n : 0n),
      amount: changeOf(event).plus(row?.amount ?? zero),
      largest: booked && !largest?.gt(booked) ? booked : largest,
      lastBookedOn: row && row.lastBookedOn > payload.bookedOn ? row.lastBookedOn : payload.bookedOn,
    };
  }),
});

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
  key: ({ payload }) => {
    if ('openedOn' in payload) return null;
    return 'correctsDay' in payload ? payload.correctsDay : payload.bookedOn;
  },
  evolve: everyBooking((row: Day | null, event: BookingEvent) => {
    const { payload, recordedAt: lastRecordedAt } = event;
    const day = row ?? emptyDay;
    if ('was' in payload) {
      const corrected = booked(booked(day, decimal(payload.was), -1), decimal(payload.is), 1);
      return { ...corrected, corrections: day.corrections + 1, lastRecordedAt };
    }
    return { ...booked(day, changeOf(event), 1), bookings: day.bookings + 1, lastRecordedAt };
  }),
});

/** An amount on its side of the day: booked (1), or reversed (-1). */
function booked(day: Day, amount: Decimal, sign: 1 | -1): Day {
  const change = amount.abs().times(sign);
  return {
    bookings: day.bookings,
    corrections: day.corrections,
    credited: amount.gt(0) ? day.credited.plus(change) : day.credited,
    debited: amount.lt(0) ? day.debited.plus(change) : day.debited,
  };
}
