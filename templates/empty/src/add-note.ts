import { defineCommand } from 'refold';
import { z } from 'zod';
import { notebook } from './events.ts';

export const addNote = defineCommand({
  name: 'addNote',
  input: z.object({ notebookId: z.string().min(1), text: z.string().min(1) }),
  events: notebook,
  stream: ({ notebookId }) => notebookId,
  decide: ({ text }) => ({ type: 'NoteAdded', payload: { text } }),
});
