import { defineConfig } from 'refold';
import { addNote } from './src/add-note.ts';
import { notebookV1 } from './src/notebook.v1.ts';

export default defineConfig({
  projections: [notebookV1],
  commands: [addNote],
});
