import { expect, test } from 'vitest';
import { globalPosition } from '../../src/events/global-position.ts';
import { type HotelEvent, isOver, wrongStays } from './hotel-judge.ts';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const payloads: Readonly<Record<string, object>> = {
  RoomReserved: { guestId: 'ada', arrival: at(20), departure: at(30), payWithinMs: 10_000, price: '85.50' },
  PaymentReceived: { amount: '85.50' },
  PaymentRefunded: { amount: '85.50' },
  PointsEarned: { reservationId: 'r1', points: 16 },
};

/** An event with the second at which it was recorded, and its payload if it is not the usual one. */
type Recorded = readonly [type: string, second: number, payload?: object];

/** The log of one stay. */
function logOf(events: readonly Recorded[]): HotelEvent[] {
  return events.map(
    ([type, second, payload = payloads[type] ?? {}], index) =>
      ({
        type,
        streamId: type === 'PointsEarned' ? 'ada' : 'r1',
        position: globalPosition(BigInt(index + 1)),
        recordedAt: at(second),
        payload,
      }) as HotelEvent, // what the judge reads of it
  );
}

const of = (version: number) => () => version;
const [reserved, paid, confirmed, checkedIn, checkedOut] = [
  ['RoomReserved', 0],
  ['PaymentReceived', 8],
  ['ReservationConfirmed', 9],
  ['GuestCheckedIn', 20],
  ['GuestCheckedOut', 31],
] as const;
const reminded = ['PaymentReminderSent', 5] as const;
const earned = ['PointsEarned', 32] as const;
const half = ['PointsEarned', 32, { reservationId: 'r1', points: 8 }] as const;
const expired = ['ReservationExpired', 10] as const;

test.each<[number, readonly Recorded[]]>([
  [1, [reserved, paid, confirmed, checkedIn, half]],
  [1, [reserved, expired]],
  [1, [reserved, ['PaymentReceived', 11], ['ReservationExpired', 12], ['PaymentRefunded', 13]]],
  [2, [reserved, reminded, paid, confirmed, checkedIn, earned]],
  [2, [reserved, paid, ['ReservationCancelled', 9], ['PaymentRefunded', 10]]],
  [3, [reserved, paid, confirmed, checkedIn, checkedOut, earned]],
  [3, [reserved, reminded, expired]],
])('a stay of version %i that its rules allow is judged to be right', (version, events) => {
  expect(wrongStays(logOf(events), of(version))).toEqual([]);
  expect(isOver(logOf(events))).toBe(true);
  expect(isOver(logOf(events.slice(0, -1)))).toBe(false);
});

test.each<[string, number, readonly Recorded[], string]>([
  [
    'cancelled and checked in',
    1,
    [reserved, paid, confirmed, ['ReservationCancelled', 10], checkedIn, half],
    'is no stay of version 1',
  ],
  ['paid twice', 1, [reserved, paid, paid, confirmed, checkedIn, half], 'is no stay of version 1'],
  ['with points twice', 2, [reserved, paid, confirmed, checkedIn, earned, earned], 'is no stay of version 2'],
  ['without its end', 1, [reserved, paid, confirmed, checkedIn], 'is no stay of version 1'],
  ['expired without a refund', 1, [reserved, ['PaymentReceived', 11], ['ReservationExpired', 12]], 'is no'],
  ['with a reminder of a later version', 1, [reserved, reminded, expired], 'is no stay of version 1'],
  ['without the reminder of its version', 2, [reserved, expired], 'is no stay of version 2'],
  ['with points of a later version', 1, [reserved, paid, confirmed, checkedIn, earned], 'earned 16 points for ada'],
  ['with the end of an earlier version', 3, [reserved, paid, confirmed, checkedIn, earned], 'is no stay of version 3'],
  ['expired too early', 1, [reserved, ['ReservationExpired', 9]], "'ReservationExpired' 1000 ms before"],
  ['reminded too early', 2, [reserved, ['PaymentReminderSent', 4], expired], "'PaymentReminderSent' 1000 ms before"],
  [
    'expired although it was paid in time',
    1,
    [reserved, paid, ['ReservationExpired', 12], ['PaymentRefunded', 13]],
    'was paid 2000 ms before it was due',
  ],
  ['checked in too early', 1, [reserved, paid, confirmed, ['GuestCheckedIn', 19], half], "'GuestCheckedIn' 1000 ms"],
  [
    'paid with another amount',
    1,
    [reserved, ['PaymentReceived', 8, { amount: '8550.00' }], confirmed, checkedIn, half],
    "has 'PaymentReceived' of 8550.00",
  ],
  ['without a reservation', 1, [paid], 'does not begin with its reservation'],
])('a stay that is %s is found', (_, version, events, problem) => {
  expect(wrongStays(logOf(events), of(version))).toEqual([expect.stringContaining(problem)]);
});
