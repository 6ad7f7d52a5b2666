import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

/** The events of upcasting.md, after two renames. */
export const guest = defineEvents(
  'guest',
  {
    CheckedIn: z.object({ room: z.string() }),
    Paid: z.object({ amount: z.int() }),
  },
  {
    was: ['visitor'],
    types: { CheckedIn: { was: ['Arrived'] } },
  },
);
