import { defineConfig } from '../../src/index.ts';
import { payReservation } from './payment.ts';
import { guestLoyaltyV1, reservationV1 } from './read-models.ts';
import { cancelReservation, reserveRoom } from './reservation.ts';
import { stayV1 } from './stay.v1.ts';
import { stayV2 } from './stay.v2.ts';
import { stayV3 } from './stay.v3.ts';

/** The steps of a stay are not mutations: only the workflow runs them. Versions 1 and 2 end the stays that began on them. */
export default defineConfig({
  projections: [reservationV1, guestLoyaltyV1],
  commands: [reserveRoom, payReservation, cancelReservation],
  reactors: [stayV1, stayV2, stayV3],
});
