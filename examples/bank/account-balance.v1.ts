import { defineProjection } from '../../src/index.ts';
import { accountColumns } from './account.v1.ts';
import { changeInSql } from './bookings.ts';
import { bankAccount, bookingTypes } from './events.ts';

/** `account@1` in SQL. Its values depend on the order of events: the first and the last booking of an account, in the order of recording. */
export const accountBalanceV1 = defineProjection({
  name: 'account_balance',
  version: 1,
  events: bankAccount,
  table: accountColumns,
  evolveSql: {
    events: ['AccountOpened', ...bookingTypes],
    rows: `
      with changes as (
        select
          *,
          ${changeInSql} as change,
          case when type <> 'Corrected' then payload->>'bookingId' end as booking_id
        from batch
      )
      select
        stream_id as account_id,
        (array_agg((payload->>'openedOn')::date order by position) filter (where type = 'AccountOpened'))[1] as opened_on,
        coalesce(sum(change), 0) as balance,
        count(booking_id) as bookings,
        count(*) filter (where type = 'Corrected') as corrections,
        coalesce(sum(change) filter (where type = 'Corrected'), 0) as corrected,
        (array_agg(booking_id order by position) filter (where booking_id is not null))[1] as first_booking_id,
        (array_agg(booking_id order by position desc) filter (where booking_id is not null))[1] as last_booking_id
      from changes
      group by 1`,
    merge: {
      openedOn: 'first',
      balance: 'add',
      bookings: 'add',
      corrections: 'add',
      corrected: 'add',
      firstBookingId: 'first',
      lastBookingId: 'last',
    },
  },
});
