import { test } from 'vitest';
import { deposit, openAccount, transfer, withdraw } from '../../examples/bank/account.ts';
import { addInterest, chargeFee, correctBooking } from '../../examples/bank/bank-bookings.ts';
import { bookingV1 } from '../../examples/bank/booking.v1.ts';
import { bankAccount } from '../../examples/bank/events.ts';
import { statementV1 } from '../../examples/bank/statement.v1.ts';
import type { NewEventOf } from '../../src/index.ts';
import { givenEvents, givenStream } from '../../src/testing.ts';

type Event = NewEventOf<typeof bankAccount>;

const now = { now: '2026-01-31T12:00:00.000Z' };
const opened = { type: 'AccountOpened', payload: { openedOn: '2026-01-01' } } as const;
const day = { bookedOn: '2026-01-31' };
const deposited = (amount: string, balance: string, bookingId = 'a-2'): Event => ({
  type: 'Deposited',
  payload: { bookingId, ...day, amount, balance },
});
const account = (...events: Event[]) => givenStream(bankAccount, opened, ...events);

test('an account is opened once, and only an open account can be used', async () => {
  await givenStream(bankAccount)
    .when(openAccount, { accountId: 'a' }, now)
    .thenEvents({ type: 'AccountOpened', payload: { openedOn: '2026-01-31' } });
  await account().when(openAccount, { accountId: 'a' }).thenRejected("Account 'a' exists already.");
  for (const command of [deposit, withdraw, chargeFee])
    await givenStream(bankAccount)
      .when(command, { accountId: 'a', amount: '1' })
      .thenRejected("There is no account 'a'. Open it first.");
});

test('every booking says the balance after it', async () => {
  await account().when(deposit, { accountId: 'a', amount: '10' }, now).thenEvents(deposited('10.00', '10.00'));
  await account(deposited('10.00', '10.00'))
    .when(withdraw, { accountId: 'a', amount: '9.99' }, now)
    .thenEvents({ type: 'Withdrawn', payload: { bookingId: 'a-3', ...day, amount: '9.99', balance: '0.01' } });
});

test('nobody takes more than an account holds, and the rejection has the numbers', async () => {
  const overdraft = { rejection: 'OVERDRAFT', accountId: 'a', balance: '10.00', amount: '10.01' };
  const held = account(deposited('10.00', '10.00'));
  await held
    .when(withdraw, { accountId: 'a', amount: '10.01' })
    .thenRejected("Account 'a' holds 10.00, less than 10.01.", overdraft);
  const stream = (streamId: string, ...events: Event[]) => ({
    family: bankAccount,
    streamId,
    events: [opened, ...events],
  });
  const both = givenEvents(stream('a', deposited('10.00', '10.00')), stream('b'));
  await both
    .when(transfer, { from: 'a', to: 'b', amount: '10.01' })
    .thenRejected("Account 'a' holds 10.00, less than 10.01.", overdraft);
  const sides = { ...day, amount: '10.00' };
  await both
    .when(transfer, { from: 'a', to: 'b', amount: '10' }, now)
    .thenStreams(
      [{ type: 'TransferSent', payload: { ...sides, bookingId: 'a-3', balance: '0.00', counterparty: 'b' } }],
      [{ type: 'TransferReceived', payload: { ...sides, bookingId: 'b-2', balance: '10.00', counterparty: 'a' } }],
    );
  await givenEvents(stream('a', deposited('10.00', '10.00')))
    .when(transfer, { from: 'a', to: 'c', amount: '1' })
    .thenRejected("There is no account 'c'. Open it first.");
});

test('interest is booked once a month, paid above zero and charged below', async () => {
  const interest = { accountId: 'a', month: '2026-01', rate: '2.5' };
  const paid = {
    type: 'InterestPaid',
    payload: { bookingId: 'a-3', ...day, month: '2026-01', amount: '2.08', balance: '1002.08' },
  } as const;
  const saver = account(deposited('1000.00', '1000.00'));
  await saver.when(addInterest, interest, now).thenEvents(paid);
  await account(deposited('1000.00', '1000.00'), paid)
    .when(addInterest, interest, now)
    .thenRejected("The interest of account 'a' is booked up to 2026-01.");
  const fee = {
    type: 'FeeCharged',
    payload: { bookingId: 'a-2', ...day, amount: '30.00', balance: '-30.00' },
  } as const;
  await account().when(chargeFee, { accountId: 'a', amount: '30' }, now).thenEvents(fee);
  await account(fee)
    .when(addInterest, { ...interest, rate: '10' }, now)
    .thenEvents({
      type: 'InterestCharged',
      payload: { bookingId: 'a-3', ...day, month: '2026-01', amount: '0.25', balance: '-30.25' },
    });
});

test('a correction books the difference to the last amount of a booking, on the day of the correction', async () => {
  const wrong = account(deposited('100.00', '100.00'));
  const correction = (amount: string) => ({ accountId: 'a', bookingId: 'a-2', amount });
  const corrected = {
    type: 'Corrected',
    payload: {
      bookingId: 'a-3',
      bookedOn: '2026-02-10',
      corrects: 'a-2',
      correctsDay: '2026-01-31',
      operation: 'Deposited',
      was: '100.00',
      is: '10.00',
      balance: '10.00',
    },
  } as const;
  await wrong.when(correctBooking, correction('10'), { now: '2026-02-10T09:00:00.000Z' }).thenEvents(corrected);
  await wrong.when(correctBooking, correction('100')).thenNothing();
  await wrong
    .when(correctBooking, { ...correction('1'), bookingId: 'a-9' })
    .thenRejected("Account 'a' has no booking 'a-9'.");
  const again = account(deposited('100.00', '100.00'), corrected);
  await again.when(correctBooking, correction('10')).thenNothing();
  await again.when(correctBooking, correction('12'), { now: '2026-02-11T09:00:00.000Z' }).thenEvents({
    type: 'Corrected',
    payload: {
      ...corrected.payload,
      bookingId: 'a-4',
      bookedOn: '2026-02-11',
      was: '10.00',
      is: '12.00',
      balance: '12.00',
    },
  });
  const received = {
    type: 'TransferReceived',
    payload: { bookingId: 'a-2', ...day, amount: '5.00', balance: '5.00', counterparty: 'b' },
  } as const;
  await account(received)
    .when(correctBooking, correction('4'))
    .thenRejected("Booking 'a-2' is one side of a transfer. Transfer the difference instead.");
});

test('a correction is on the statement of its own month, and the one that was sent does not change', async () => {
  const given = givenEvents({
    family: bankAccount,
    streamId: 'a',
    events: [
      opened,
      deposited('100.00', '100.00'),
      {
        type: 'Corrected',
        payload: {
          bookingId: 'a-3',
          bookedOn: '2026-02-10',
          corrects: 'a-2',
          correctsDay: '2026-01-31',
          operation: 'Deposited',
          was: '100.00',
          is: '10.00',
          balance: '10.00',
        },
      },
    ],
  });
  const nothing = {
    credited: '0.00',
    debited: '0.00',
    interest: '0.00',
    corrected: '0.00',
    accountId: 'a',
    bookings: 1,
  };
  const statements = given.projectedBy(statementV1);
  await statements.thenRows(
    { ...nothing, statementId: 'a/2026-01', month: '2026-01', opening: '0.00', credited: '100.00', closing: '100.00' },
    {
      ...nothing,
      statementId: 'a/2026-02',
      month: '2026-02',
      opening: '100.00',
      corrected: '-90.00',
      closing: '10.00',
    },
  );
  await statements.thenReplayable();
  await given.projectedBy(bookingV1).thenReplayable();
});
