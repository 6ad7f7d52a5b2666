import fc from 'fast-check';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createErrorMask } from '../../../src/gateway/requests/mask-errors.ts';
import {
  columnLimits,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  type Projection,
  t,
} from '../../../src/index.ts';
import { createTextCheck } from '../../../src/projections/fold/unfitting-texts.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { AppendRequest } from '../../../src/store/event-log.ts';
import { createRuntimeSetting, type RuntimeSetting } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const article = defineEvents('article', {
  Written: z.object({ title: z.string(), slug: z.string() }),
  Renamed: z.object({ title: z.string() }),
  Tagged: z.object({ tags: z.array(z.string()) }),
});
type Policy = 'stop' | 'skip' | 'dead-letter';

const articles = (onError: Policy = 'stop', mode: 'async' | 'inline' = 'async') =>
  defineProjection({
    name: 'article',
    version: 1,
    events: article,
    mode,
    onError,
    table: {
      articleId: t.text().primaryKey(),
      title: t.text().index(),
      slug: t.text().unique(),
      body: t.text().index({ search: true }),
      written: t.timestamptz(),
      kind: t.enum(['short', 'long']),
      rating: t.object({ stars: t.integer(), average: t.decimal(4, 2) }),
    },
    key: (event) => event.streamId,
    evolve: {
      Written: (_, { payload: { title, slug }, recordedAt }) => ({
        ...{ title, slug, body: title, written: recordedAt, kind: 'short' },
        rating: { stars: 0, average: '0' },
      }),
      Renamed: (row, { payload: { title } }) => row && { ...row, title },
    },
  });

const tags = defineProjection({
  name: 'tag',
  version: 1,
  events: article,
  table: { tag: t.text().primaryKey(), articleId: t.text() },
  key: (event) => (event.type === 'Tagged' ? event.payload.tags : null),
  evolve: { Tagged: (_, event) => ({ articleId: event.streamId }) },
});

const rename = defineCommand({
  name: 'rename',
  input: z.object({ id: z.string(), title: z.string() }),
  events: article,
  stream: ({ id }) => id,
  decide: ({ title }) => ({ type: 'Renamed', payload: { title } }),
});

let setting: RuntimeSetting & { close(): Promise<void> };
beforeEach(async () => {
  setting = await createRuntimeSetting();
});
afterEach(() => setting.close());

const start = (projections: readonly Projection[]) =>
  setting.start(defineConfig({ projections, events: [article], commands: [rename] }));

function write({ log }: Runtime, streamId: string, title: string, slug = streamId) {
  return log.append({ family: article, streamId, events: [{ type: 'Written', payload: { title, slug } }] });
}

const tagged: AppendRequest<typeof article> = {
  family: article,
  streamId: 't',
  events: [{ type: 'Tagged', payload: { tags: ['short', 'x'.repeat(3000)] } }],
};
const eventsIn = async ({ db }: Runtime) => (await db.query({ text: 'select from refold.events' })).length;
const tooLong = (column: string, bytes: number) => ({
  code: 'TEXT_TOO_LONG',
  message: `'${column}' would hold ${bytes} bytes; 1024 are the most. Nothing was written.`,
  fields: { column, bytes, maxBytes: 1024 },
});

test.each([
  ['stop', 'async'],
  ['dead-letter', 'async'],
  ['stop', 'inline'],
] as const)('a text that is too long for an indexed, unique or key column refuses its command: %s, %s', async (onError, mode) => {
  const projection = articles(onError, mode);
  const runtime = await start([projection, tags]);
  await write(runtime, 'a', 'x'.repeat(1024));
  await expect(write(runtime, 'b', 'ä'.repeat(513))).rejects.toMatchObject(tooLong('title', 1026));
  await expect(write(runtime, 'b', 'b', 'x'.repeat(2000))).rejects.toMatchObject(tooLong('slug', 2000));
  // Its handler ignores events without a row.
  await expect(runtime.execute(rename, { id: 'a', title: 'x'.repeat(1025) })).rejects.toMatchObject(
    tooLong('title', 1025),
  );
  const within = runtime.db.transaction((tx) => runtime.log.append(tagged, tx));
  await expect(within).rejects.toMatchObject(tooLong('tag', 3000));
  expect(await eventsIn(runtime)).toBe(1);

  await runtime.execute(rename, { id: 'a', title: 'new' });
  // Nothing has stopped.
  const titles = () => runtime.db.query<{ title: string }>({ text: 'select title from read_models.article_v1' });
  await until(async () => (await titles()).some((row) => row.title === 'new'));
});

test('a read model that skips such events refuses no command, and imports are not refused', async () => {
  const runtime = await start([articles('skip'), tags]);
  await write(runtime, 'a', 'x'.repeat(2000));
  expect(await runtime.log.appendInOrder([tagged])).toEqual([{ kind: 'written' }]);
  expect(await eventsIn(runtime)).toBe(2);
});

test('a client gets the code, the column and the limit', async () => {
  const runtime = await start([articles()]);
  const error = await write(runtime, 'a', 'x'.repeat(2000)).catch((refused: unknown) => refused);
  const mask = createErrorMask({ logger: pino({ level: 'silent' }), hints: false });
  expect(mask(error)).toMatchObject({
    message: "'title' would hold 2000 bytes; 1024 are the most. Nothing was written.",
    extensions: { code: 'TEXT_TOO_LONG', column: 'title', bytes: 2000, maxBytes: 1024 },
  });
});

test('an event is refused if and only if one of its texts is longer than its limit', () => {
  const projection = articles();
  const check = createTextCheck([projection]);
  const limits = columnLimits(projection);
  const text = fc
    .tuple(fc.constantFrom('x', 'ä', '€', '😀', '"'), fc.integer({ min: 0, max: 1100 }))
    .map(([sign, times]) => sign.repeat(times));
  fc.assert(
    fc.property(text, text, fc.boolean(), (title, slug, isRenamed) => {
      const [type, payload] = isRenamed ? ['Renamed', { title }] : ['Written', { title, slug }];
      const event = { id: '1', family: 'article', streamId: 'a', type, payload, payloadVersion: 1, metadata: {} };
      const before = structuredClone(event);
      const fits =
        Buffer.byteLength(title) <= Number(limits.title.maxBytes) &&
        (isRenamed || Buffer.byteLength(slug) <= Number(limits.slug.maxBytes));
      const tried = () => check(event, JSON.stringify(event));
      if (fits) expect(tried).not.toThrow();
      else expect(tried).toThrow(expect.objectContaining({ code: 'TEXT_TOO_LONG' }));
      expect(event).toEqual(before);
    }),
  );
});

test('events that can not be too long are not tried, and what evolve throws or changes is ignored', () => {
  let tries = 0;
  const projection = defineProjection({
    name: 'fragile',
    version: 1,
    events: article,
    table: { articleId: t.text().primaryKey(), title: t.text().index() },
    key: (event) => event.streamId,
    evolve: {
      Renamed: (_, event) => {
        tries++;
        Object.assign(event.payload, { title: 'changed' });
        throw new Error('needs a row that it knows');
      },
    },
  });
  const check = createTextCheck([projection]);
  const renamed = (title: string) => {
    const payload = { title };
    const event = {
      id: '1',
      family: 'article',
      streamId: 'a',
      type: 'Renamed',
      payload,
      payloadVersion: 1,
      metadata: {},
    };
    check(event, JSON.stringify(event));
    expect(payload).toEqual({ title });
  };
  renamed('x'.repeat(800));
  expect(tries).toBe(0);
  renamed('x'.repeat(2000));
  expect(tries).toBe(2);
});
