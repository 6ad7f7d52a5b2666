import type { loyalty, payment, reservation } from '../../examples/hotel/events.ts';
import type { GlobalPosition, RecordedEventOf } from '../../src/index.ts';

export type HotelEvent = RecordedEventOf<typeof reservation | typeof payment | typeof loyalty>;

type RoomReserved = RecordedEventOf<typeof reservation, 'RoomReserved'>;

/** A letter for each event of a stay. */
const letters: Readonly<Record<HotelEvent['type'], string>> = {
  RoomReserved: 'R',
  PaymentReceived: 'P',
  PaymentReminderSent: 'M',
  ReservationConfirmed: 'C',
  GuestCheckedIn: 'I',
  GuestCheckedOut: 'O',
  PointsEarned: 'L',
  ReservationExpired: 'X',
  ReservationCancelled: 'G', // by the guest
  PaymentRefunded: 'F',
};

/** The whole stays that each version allows. X: unpaid at the due time, G: cancelled by the guest. */
const allowed: Readonly<Record<number, RegExp>> = {
  1: /^R(PCIL|P?XF?|P?GF?)$/,
  2: /^R(M?PCIL|PMCIL|(MP?|PM)XF?|(M?P?|PM)GF?)$/,
  3: /^R(M?PCIOL|PMCIOL|(MP?|PM)XF?|(M?P?|PM)GF?)$/,
};

/**
 * One sentence for each stay that is not whole, or whose events are not those of the version that it began on, in an order, at times and with
 * amounts that this version allows.
 *
 * @param events the whole log of the hotel
 * @param versionAt the version of the workflow to which an event belongs
 */
export function wrongStays(events: readonly HotelEvent[], versionAt: (position: GlobalPosition) => number): string[] {
  return [...Map.groupBy(events, stayOf)].flatMap(([id, stay]) => {
    const [first] = stay;
    const found = stay.map(({ type }) => letters[type]).join('');
    const tell = (problem: string) => `${id} (${found}) ${problem}`;
    if (first?.type !== 'RoomReserved') return [tell('does not begin with its reservation')];
    const version = versionAt(first.position);
    if (!allowed[version]?.test(found) || found.includes('P') !== /[LF]/.test(found))
      return [tell(`is no stay of version ${version}`)];
    return [...wrongTimes(first, stay), ...wrongAmounts(first, stay, version)].map(tell);
  });
}

/** Whether the last event of a stay is there. */
export function isOver(stay: readonly HotelEvent[]): boolean {
  const types = new Set(stay.map(({ type }) => type));
  const cancelled = types.has('ReservationExpired') || types.has('ReservationCancelled');
  return types.has('PointsEarned') || (cancelled && (types.has('PaymentRefunded') || !types.has('PaymentReceived')));
}

/** The id of the reservation to which an event belongs. */
export function stayOf(event: HotelEvent): string {
  return event.type === 'PointsEarned' ? event.payload.reservationId : event.streamId;
}

function wrongTimes({ recordedAt, payload }: RoomReserved, stay: readonly HotelEvent[]): string[] {
  const reserved = Date.parse(recordedAt);
  // A workflow begins to wait after the reservation, so nothing is due earlier than this.
  const due = reserved + payload.payWithinMs;
  const earliest: Partial<Record<HotelEvent['type'], number>> = {
    PaymentReminderSent: reserved + payload.payWithinMs / 2,
    ReservationExpired: due,
    GuestCheckedIn: Date.parse(payload.arrival),
    GuestCheckedOut: Date.parse(payload.departure),
  };
  const isUnpaid = stay.some(({ type }) => type === 'ReservationExpired');
  return stay.flatMap(({ type, recordedAt }) => {
    const at = Date.parse(recordedAt);
    const least = earliest[type];
    if (least !== undefined && at < least) return [`has '${type}' ${least - at} ms before its time`];
    if (isUnpaid && type === 'PaymentReceived' && at <= due) return [`was paid ${due - at} ms before it was due`];
    return [];
  });
}

function wrongAmounts({ payload }: RoomReserved, stay: readonly HotelEvent[], version: number): string[] {
  const points = (version === 1 ? 1 : 2) * Math.floor(Number(payload.price) / 10);
  return stay.flatMap((event) => {
    switch (event.type) {
      case 'PaymentReceived':
      case 'PaymentRefunded':
        return event.payload.amount === payload.price ? [] : [`has '${event.type}' of ${event.payload.amount}`];
      case 'PointsEarned':
        return event.streamId === payload.guestId && event.payload.points === points
          ? []
          : [`earned ${event.payload.points} points for ${event.streamId} instead of ${points} for ${payload.guestId}`];
      default:
        return [];
    }
  });
}
