import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';

export const note = defineEvents('note', { Written: z.object({ body: z.string() }) });
export const noteV1 = defineProjection({
  name: 'note',
  version: 1,
  events: note,
  table: { noteId: t.text().primaryKey(), body: t.text() },
  key: ({ streamId }) => streamId,
  evolve: { Written: (_, { payload: { body } }) => ({ body }) },
});

// Verifies the version: node large-rows.ts URL. Prints how many rows were compared, and how many differ.
const [, , url] = process.argv;
if (url?.startsWith('postgres')) {
  const db = createDatabase({ url });
  const options = { db, log: createEventLog(db, [note]), readSchema: 'read_models', projection: noteV1 };
  const { rowsCompared, differences } = await verifyVersion(options);
  console.log(`${rowsCompared} compared, ${differences} differ`);
  await db.close();
}
