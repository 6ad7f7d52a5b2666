import { defineConfig } from 'refold';
import { addNote } from './src/add-note.ts';
import { notebookV1 } from './src/notebook.v1.ts';

export default defineConfig({
  // DATABASE_URL names the server; `.env.example` shows how. Refold's tables are in the schema `refold`.
  database: { readSchema: 'read_models' },
  projections: [notebookV1],
  commands: [addNote],
});
