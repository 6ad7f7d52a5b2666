import { z } from 'zod';
import { defineEvents } from '../../../src/index.ts';

/** Jobs, and what ran for them. */
export const job = defineEvents('job', {
  Asked: z.object({}),
  Ran: z.object({ by: z.string() }),
});
