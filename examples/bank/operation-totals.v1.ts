import { defineProjection, t } from '../../src/index.ts';
import { bankAccount } from './events.ts';

/**
 * Hot keys: every booking of the bank touches a handful of rows. Each batch is reduced to one row for each of them, which is added to the table's.
 */
export const operationTotalsV1 = defineProjection({
  name: 'operation_totals',
  version: 1,
  events: bankAccount,
  table: {
    operation: t.text().primaryKey(),
    bookings: t.bigint(),
    amount: t.decimal(18, 2).describe('Credits less debits, with corrections.'),
    largest: t.decimal(14, 2).describe('The largest booking, as it was recorded.').nullable(),
    lastBookedOn: t.date(),
  },
  evolveSql: {
    events: ['Credited', 'Debited', 'Corrected'],
    rows: `
      select
        coalesce(payload->>'operation', 'none') as operation,
        count(*) filter (where type <> 'Corrected') as bookings,
        sum(case type
          when 'Credited' then (payload->>'amount')::numeric
          when 'Debited' then -(payload->>'amount')::numeric
          else (payload->>'is')::numeric - (payload->>'was')::numeric
        end) as amount,
        max((payload->>'amount')::numeric) as largest,
        max((payload->>'bookedOn')::date) as last_booked_on
      from batch
      group by 1`,
    merge: { bookings: 'add', amount: 'add', largest: 'max', lastBookedOn: 'max' },
  },
});
