import { defineProjection, t } from 'refold';
import { notebook } from './events.ts';

export const notebookV1 = defineProjection({
  name: 'notebook',
  version: 1,
  events: notebook,
  table: {
    notebookId: t.text().primaryKey(),
    notes: t.list(t.text()),
  },
  key: (event) => event.streamId,
  evolve: {
    NoteAdded: (row, { payload }) => ({ notes: [...(row?.notes ?? []), payload.text] }),
  },
});
