import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineCommand, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { limitedInputs } from '../../../src/schema/analysis/limited-inputs.ts';

const article = defineEvents('article', {
  Written: z.object({ title: z.string(), authors: z.array(z.object({ email: z.string() })) }),
  Closed: z.object({}),
});

const articles = (onError: 'stop' | 'skip' = 'stop') =>
  defineProjection({
    name: 'article',
    version: 1,
    events: article,
    onError,
    table: {
      articleId: t.text().primaryKey(),
      title: t.text().index(),
      email: t.text().unique(),
      body: t.text(),
      stars: t.integer().index(),
    },
    key: (event) => event.streamId,
    evolve: { Written: (row, event) => row ?? { title: event.payload.title, email: '', body: '', stars: 0 } },
  });

function write<I extends z.ZodObject>(input: I, emits: 'Written' | 'Closed' = 'Written') {
  return defineCommand({
    name: 'write',
    input,
    events: article,
    emits: [emits],
    stream: () => 'a',
    decide: () => [],
  });
}

const note = (column: string) =>
  `article@1: '${column}' is indexed and holds at most 1024 bytes. The input of 'write' takes longer texts, which are refused with TEXT_TOO_LONG. Limit it with columnLimits${column === 'email' ? '' : ', or declare the column with .index({ long: true })'}.`;

const author = z.object({ email: z.string().nullable() }).meta({ id: 'Author' });

test.each([
  ['a text without a limit', z.object({ title: z.string() }), [note('title')]],
  ['a limit of characters that may have more bytes', z.object({ title: z.string().max(342) }), [note('title')]],
  ['a limit that fits', z.object({ title: z.string().max(341) }), []],
  ['a text inside of lists, objects and definitions', z.object({ authors: z.array(author) }), [note('email')]],
  ['an optional text', z.object({ title: z.string().optional() }), [note('title')]],
  ['texts of a fixed length', z.object({ title: z.enum(['a', 'b']), email: z.uuid() }), []],
  [
    'the key, columns without an index and numbers',
    z.object({ articleId: z.string(), body: z.string(), stars: z.int() }),
    [],
  ],
] as const)('an input is compared with the limits of indexed columns: %s', (_, input, notes) => {
  expect(limitedInputs([articles()], [write(input)])).toEqual(notes);
});

test('commands whose events the projection does not fold, and projections that skip them, are left out', () => {
  const input = z.object({ title: z.string() });
  expect(limitedInputs([articles()], [write(input, 'Closed')])).toEqual([]);
  expect(limitedInputs([articles('skip')], [write(input)])).toEqual([]);
});
