import { test } from 'node:test';
import { givenEvents, givenStream } from 'refold/testing';
import { addNote } from './add-note.ts';
import { notebook } from './events.ts';
import { notebookV1 } from './notebook.v1.ts';

const added = { type: 'NoteAdded', payload: { text: 'Hello' } } as const;

test('a note is added to the notebook', async () => {
  await givenStream(notebook).when(addNote, { notebookId: 'n1', text: 'Hello' }).thenEvents(added);
});

test('a notebook has its notes in order', async () => {
  const projected = givenEvents({ family: notebook, streamId: 'n1', events: [added, added] }).projectedBy(notebookV1);
  await projected.thenRows({ notebookId: 'n1', notes: ['Hello', 'Hello'] });
  await projected.thenReplayable();
});
