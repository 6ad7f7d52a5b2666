import { defineEvents } from 'refold';
import { z } from 'zod';

export const notebook = defineEvents('notebook', {
  NoteAdded: z.object({ text: z.string().min(1) }),
});
