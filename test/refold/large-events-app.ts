import { z } from 'zod';
import {
  defineCommand,
  defineConfig,
  defineEvents,
  defineImport,
  defineProjection,
  defineReactor,
  defineState,
  t,
} from '../../src/index.ts';

// The environment says whether the code of a process has its bug.
const { BROKEN } = process.env;

export const note = defineEvents('note', { Written: z.object({ id: z.string(), body: z.string() }) });

/** Its events are of the first version. */
const letter = defineEvents(
  'letter',
  { Sent: z.object({ id: z.string(), body: z.string(), isRead: z.boolean() }) },
  { upcasters: { Sent: [(old: { id: string; body: string }) => ({ ...old, isRead: false })] } },
);

const columns = { id: t.text().primaryKey(), body: t.text() };

const ofNotes = (name: string) =>
  defineProjection({
    name,
    version: 1,
    events: note,
    table: columns,
    key: ({ payload }) => payload.id,
    evolve: { Written: (_, { payload: { body } }) => ({ body }) },
  });

const bySql = (name: string, events: typeof note | typeof letter) =>
  defineProjection({
    name,
    version: 1,
    events: events as typeof note,
    table: columns,
    evolveSql: {
      events: [...events.types] as 'Written'[],
      rows: `select payload->>'id' as id, max(payload->>'body') as body from batch group by 1`,
      merge: { body: 'last' },
    },
  });

/** All events are of one row. */
const ofStreams = (name: string, onError: 'dead-letter' | 'skip') =>
  defineProjection({
    name,
    version: 1,
    events: note,
    history: true,
    onError,
    table: { streamId: t.text().primaryKey(), body: t.text(), events: t.integer() },
    key: ({ streamId }) => streamId,
    evolve: {
      Written(row, { payload: { body } }) {
        if (BROKEN) throw new Error('not yet');
        return { body, events: (row?.events ?? 0) + 1 };
      },
    },
  });

const reader = defineReactor({ name: 'reader', events: note, handle: { Written: async () => {} } });

const counted = defineState(note, () => ({ events: 0 }), { Written: ({ events }) => ({ events: events + 1 }) });

const write = defineCommand({
  name: 'writeNote',
  input: z.object({ id: z.string() }),
  state: counted,
  stream: () => 'all',
  decide: ({ id }, { events }) => ({ type: 'Written', payload: { id, body: String(events) } }),
});

const notes = defineImport({
  name: 'notes',
  async *toAppends(lines) {
    for await (const { text, number } of lines)
      yield {
        family: note,
        streamId: 'imported',
        events: [{ type: 'Written', payload: { id: `i${number}`, body: text } }],
        idempotencyKey: `notes:${number}`,
      };
  },
});

export default defineConfig({
  projections: [
    ofNotes('note'),
    bySql('counted', note),
    bySql('upcast', letter),
    ofStreams('stream', 'dead-letter'),
    ofStreams('skipping', 'skip'),
  ],
  reactors: [reader],
  commands: [write],
  imports: [notes],
  events: [note, letter],
  gateway: { admin: { tokens: [{ name: 'test', token: 'x'.repeat(40), rights: 'all' }] } },
});
