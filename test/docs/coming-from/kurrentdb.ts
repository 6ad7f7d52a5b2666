import { z } from 'zod';
import { defineEvents, defineProjection, defineReactor, t } from '../../../src/index.ts';

/** Stands for another service. */
export const doorSign = {
  shown: [] as string[],
  async show(text: string, { idempotencyKey }: { readonly idempotencyKey: string }) {
    this.shown.push(`${text} (${idempotencyKey})`);
  },
};

export const room = defineEvents('room', {
  GuestEntered: z.object({ name: z.string() }),
  GuestLeft: z.object({ name: z.string() }),
});

export const occupancyV1 = defineProjection({
  name: 'occupancy',
  version: 1,
  events: room,
  table: { roomId: t.text().primaryKey(), guests: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    GuestEntered: (row) => ({ guests: (row?.guests ?? 0) + 1 }),
    GuestLeft: (row) => ({ guests: (row?.guests ?? 0) - 1 }),
  },
});

export const greeting = defineReactor({
  name: 'greeting',
  events: room,
  handle: {
    GuestEntered: ({ payload }, { messageId }) => doorSign.show(payload.name, { idempotencyKey: messageId }),
  },
  concurrency: 10,
  onError: { policy: 'dead-letter', retries: [{ times: 5 }] },
});
