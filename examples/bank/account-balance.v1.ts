import { defineProjection, t } from '../../src/index.ts';
import { bankAccount } from './events.ts';

/** Corrections, and values that depend on the order of events: the first and the last booking of an account, in the order of recording. */
export const accountBalanceV1 = defineProjection({
  name: 'account_balance',
  version: 1,
  events: bankAccount,
  table: {
    accountId: t.text().primaryKey(),
    balance: t.decimal(18, 2).index(),
    bookings: t.integer(),
    corrections: t.integer(),
    corrected: t.decimal(18, 2).describe('What corrections changed the balance by, up or down.'),
    firstBookingId: t.text().nullable(),
    lastBookingId: t.text().nullable(),
  },
  key: (event) => event.streamId,
  evolveSql: {
    events: ['Credited', 'Debited', 'Corrected'],
    rows: `
      with changes as (
        select
          *,
          case type
            when 'Credited' then (payload->>'amount')::numeric
            when 'Debited' then -(payload->>'amount')::numeric
            else (payload->>'is')::numeric - (payload->>'was')::numeric
          end as change,
          case when type <> 'Corrected' then payload->>'bookingId' end as booking_id
        from batch
      )
      select
        stream_id as account_id,
        sum(change) as balance,
        count(booking_id) as bookings,
        count(*) filter (where type = 'Corrected') as corrections,
        coalesce(sum(change) filter (where type = 'Corrected'), 0) as corrected,
        (array_agg(booking_id order by position) filter (where booking_id is not null))[1] as first_booking_id,
        (array_agg(booking_id order by position desc) filter (where booking_id is not null))[1] as last_booking_id
      from changes
      group by 1`,
    merge: {
      balance: 'add',
      bookings: 'add',
      corrections: 'add',
      corrected: 'add',
      firstBookingId: 'first',
      lastBookingId: 'last',
    },
  },
});
