import { type Decimal, decimal } from '../../src/index.ts';
import type { BookingEvent, BookingType } from './events.ts';

/** What a booking changes the balance by. */
export function changeOf(event: Pick<BookingEvent, 'type' | 'payload'>): Decimal {
  const { payload } = event;
  if ('was' in payload) return decimal(payload.is).minus(payload.was);
  return isDebit(event.type) ? decimal(payload.amount).times(-1) : decimal(payload.amount);
}

/** The same in SQL, of a row of `batch`. */
export const changeInSql = `case
          when type in ('Withdrawn', 'TransferSent', 'InterestCharged', 'FeeCharged') then -(payload->>'amount')::numeric
          when type = 'Corrected' then (payload->>'is')::numeric - (payload->>'was')::numeric
          else (payload->>'amount')::numeric
        end`;

export function isDebit(type: BookingType): boolean {
  switch (type) {
    case 'Withdrawn':
    case 'TransferSent':
    case 'InterestCharged':
    case 'FeeCharged':
      return true;
    case 'Deposited':
    case 'TransferReceived':
    case 'InterestPaid':
    case 'Corrected':
      return false;
  }
}

/** Handlers of `evolve` that treat every booking alike. */
export function everyBooking<H>(handler: H): { readonly [T in BookingType]: H } {
  return {
    Deposited: handler,
    Withdrawn: handler,
    TransferSent: handler,
    TransferReceived: handler,
    InterestPaid: handler,
    InterestCharged: handler,
    FeeCharged: handler,
    Corrected: handler,
  };
}
