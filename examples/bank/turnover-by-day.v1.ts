import { defineProjection, t } from '../../src/index.ts';
import { changeInSql } from './bookings.ts';
import { bankAccount, bookingTypes } from './events.ts';

/**
 * Time buckets: the day for which a booking counts decides its row, not the time at which it is recorded; a late booking finds its bucket
 * in the table. A correction goes to the day of the booking that it corrects, and reverses the old amount there.
 */
export const turnoverByDayV1 = defineProjection({
  name: 'turnover_by_day',
  version: 1,
  events: bankAccount,
  table: {
    day: t.date().primaryKey(),
    bookings: t.integer(),
    credited: t.decimal(18, 2),
    debited: t.decimal(18, 2),
    corrections: t.integer(),
    lastRecordedAt: t.timestamptz().describe('When a booking of this day was last recorded.'),
  },
  evolveSql: {
    events: bookingTypes,
    // An amount below zero is a debit. A correction has two parts: it books one amount and reverses the other, each on its own side.
    rows: `
      select
        coalesce(payload->>'correctsDay', payload->>'bookedOn')::date as day,
        count(*) filter (where sign = 1 and type <> 'Corrected') as bookings,
        coalesce(sum(sign * amount) filter (where amount > 0), 0) as credited,
        coalesce(sum(sign * -amount) filter (where amount < 0), 0) as debited,
        count(*) filter (where sign = 1 and type = 'Corrected') as corrections,
        max(recorded_at) as last_recorded_at
      from batch
      cross join lateral (
        values
          (1, case when type = 'Corrected' then (payload->>'is')::numeric else ${changeInSql} end),
          (-1, (payload->>'was')::numeric)
      ) as part (sign, amount)
      where amount is not null
      group by 1`,
    merge: { bookings: 'add', credited: 'add', debited: 'add', corrections: 'add', lastRecordedAt: 'max' },
  },
});
