import { defineProjection, t } from '../../src/index.ts';
import { changeInSql } from './bookings.ts';
import { bankAccount, bookingTypes } from './events.ts';

/**
 * Hot keys: every booking of the bank touches a handful of rows. Each batch is reduced to one row for each of them, which is added to the table's.
 */
export const operationTotalsV1 = defineProjection({
  name: 'operation_totals',
  version: 1,
  events: bankAccount,
  table: {
    operation: t.text().primaryKey().describe('The type of the booking, or of the booking that a correction is about.'),
    bookings: t.bigint(),
    amount: t.decimal(18, 2).describe('Credits less debits, with corrections.'),
    largest: t.decimal(18, 2).describe('The largest booking, as it was recorded.').nullable(),
    lastBookedOn: t.date(),
  },
  evolveSql: {
    events: bookingTypes,
    rows: `
      select
        coalesce(payload->>'operation', type) as operation,
        count(*) filter (where type <> 'Corrected') as bookings,
        sum(${changeInSql}) as amount,
        max((payload->>'amount')::numeric) as largest,
        max((payload->>'bookedOn')::date) as last_booked_on
      from batch
      group by 1`,
    merge: { bookings: 'add', amount: 'add', largest: 'max', lastBookedOn: 'max' },
  },
});
