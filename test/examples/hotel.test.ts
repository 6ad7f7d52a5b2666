import { afterAll, beforeAll, expect, test } from 'vitest';
import app from '../../examples/hotel/app.ts';
import { beginning, createRefold, type Refold } from '../../src/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let hotel: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  hotel = await createRefold({
    ...app,
    database: { ...app.database, url: database.url },
    gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
  });
});
afterAll(async () => {
  await hotel.stop();
  await database.drop();
});

async function ask(source: string): Promise<Record<string, unknown>> {
  const { data, errors } = await hotel.graphql(source);
  expect(errors).toBeUndefined();
  return JSON.parse(JSON.stringify(data));
}

/** Of three nights that are over: nobody has to wait for the arrival or the departure. */
const reserve = (reservationId: string) =>
  ask(`mutation {
    reserveRoom(input: {
      reservationId: "${reservationId}", guestId: "ada", room: double
      arrival: "2026-01-10T15:00:00Z", departure: "2026-01-13T11:00:00Z"
    }) { reservation { status price } }
  }`);

function statusOf(reservationId: string, status: string): Promise<unknown> {
  return until(async () => {
    const { reservation } = await ask(`{ reservation(reservationId: "${reservationId}") { status paid } }`);
    return (reservation as { status: string } | null)?.status === status && reservation; // as selected
  });
}

test('a reservation that is paid becomes a stay, which earns points once', async () => {
  expect(await reserve('r1')).toEqual({ reserveRoom: { reservation: { status: 'Reserved', price: '360.00' } } });
  await ask('mutation { payReservation(input: { reservationId: "r1" }) { position } }');
  expect(await statusOf('r1', 'CheckedOut')).toEqual({ status: 'CheckedOut', paid: '360.00' });
  await until(async () => (await ask('{ guestLoyalty(guestId: "ada") { points } }')).guestLoyalty !== null);
  expect(await ask('{ guestLoyalty(guestId: "ada") { points stays } }')).toEqual({
    guestLoyalty: { points: 72, stays: 1 },
  });
  const again = await hotel.graphql('mutation { payReservation(input: { reservationId: "r1" }) { position } }');
  expect(again.errors?.[0]?.message).toBe("Reservation 'r1' is paid already.");
});

test('a reservation that the guest has cancelled can’t be paid', async () => {
  await reserve('r2');
  await ask('mutation { cancelReservation(input: { reservationId: "r2" }) { position } }');
  expect(await statusOf('r2', 'Cancelled')).toEqual({ status: 'Cancelled', paid: '0.00' });
  const { errors } = await hotel.graphql('mutation { payReservation(input: { reservationId: "r2" }) { position } }');
  expect(errors?.[0]?.message).toBe("Reservation 'r2' can't be paid: it is Cancelled.");
});

test('a stay and its consequences can be followed by its ids', async () => {
  const { events } = await hotel.log.readAll({ after: beginning, upTo: await hotel.log.horizon(), limit: 1000 });
  const reserved = events.find(({ type, streamId }) => type === 'RoomReserved' && streamId === 'r1');
  const caused = events.filter(({ metadata }) => metadata.causationId === reserved?.id);
  expect(caused.map(({ type }) => type)).toEqual([
    'ReservationConfirmed',
    'GuestCheckedIn',
    'GuestCheckedOut',
    'PointsEarned',
  ]);
  expect(new Set(caused.map(({ metadata }) => metadata.correlationId))).toEqual(
    new Set([reserved?.metadata.correlationId ?? reserved?.id]),
  );
});
