import { z } from 'zod';
import { defineCommand } from '../../src/index.ts';
import { loyalty } from './events.ts';
import { reservationId } from './reservation.ts';

/** A step of a stay. It needs no state: a step runs once. */
export const earnPoints = defineCommand({
  name: 'earnPoints',
  input: z.object({ guestId: z.string(), reservationId, points: z.int() }),
  events: loyalty,
  stream: (input) => input.guestId,
  decide: ({ reservationId, points }) => ({ type: 'PointsEarned', payload: { reservationId, points } }),
});
