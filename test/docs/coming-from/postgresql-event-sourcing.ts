import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineProjection, defineState, t } from '../../../src/index.ts';

export const ride = defineEvents('ride', {
  RideRequested: z.object({ riderId: z.uuid(), price: z.string() }),
  RideAccepted: z.object({ driverId: z.uuid() }),
  RideFinished: z.object({}),
});

type RideStatus = 'None' | 'Requested' | 'Accepted' | 'Finished';

export const rideState = defineState(
  ride,
  (): { status: RideStatus } => ({ status: 'None' }),
  {
    RideRequested: () => ({ status: 'Requested' }),
    RideAccepted: () => ({ status: 'Accepted' }),
    RideFinished: () => ({ status: 'Finished' }),
  },
  { snapshotEvery: 10 },
);

export const finishRide = defineCommand({
  name: 'finishRide',
  input: z.object({ rideId: z.uuid() }),
  state: rideState,
  stream: ({ rideId }) => rideId,
  decide(_, { status }) {
    if (status !== 'Accepted') throw new CommandRejected('Only an accepted ride can be finished.', { status });
    return { type: 'RideFinished', payload: {} };
  },
});

export const rideV1 = defineProjection({
  name: 'ride',
  version: 1,
  mode: 'inline',
  events: ride,
  table: {
    rideId: t.uuid().primaryKey(),
    riderId: t.uuid().index(),
    driverId: t.uuid().nullable(),
    price: t.decimal(12, 2),
    status: t.enum(['Requested', 'Accepted', 'Finished']).index(),
  },
  key: (event) => event.streamId,
  evolve: {
    RideRequested: (_, { payload }) => ({ ...payload, driverId: null, status: 'Requested' }),
    RideAccepted: (row, { payload }) => row && { ...row, driverId: payload.driverId, status: 'Accepted' },
    RideFinished: (row) => row && { ...row, status: 'Finished' },
  },
});
