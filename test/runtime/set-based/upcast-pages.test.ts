import { expect, test } from 'vitest';
import { z } from 'zod';
import { beginning, defineConfig, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { upcastEvents } from '../../../src/runtime/set-based/upcast-events.ts';
import { reaches, settingOfEachTest } from '../../support/runtime-setting.ts';

const letter = defineEvents(
  'letter',
  { Sent: z.object({ body: z.string(), isRead: z.boolean() }) },
  { upcasters: { Sent: [(old: { body: string }) => ({ ...old, isRead: false })] } },
);
const letters = defineProjection({
  name: 'letters',
  version: 1,
  events: letter,
  table: { day: t.text().primaryKey(), sent: t.bigint(), characters: t.bigint() },
  evolveSql: {
    events: ['Sent'],
    rows: `select 'all' as day, count(*) as sent, sum(length(payload->>'body')) as characters from batch group by 1`,
    merge: { sent: 'add', characters: 'add' },
  },
});

const events = 40;
const setting = settingOfEachTest();

test('evolveSql folds large events that are upcast in batches of one page each', async () => {
  const runtime = await setting.start(defineConfig({ projections: [letters] }));
  for (let n = 0; n < events; n++)
    await runtime.log.append({
      family: letter,
      streamId: `l${n}`,
      events: [{ type: 'Sent', payload: { body: '.'.repeat(1_000_000), isRead: false } }],
    });
  await reaches(runtime, letters, 'active');
  const rows = await runtime.db.query({ text: 'select sent::int, characters::int from read_models.letters_v1' });
  expect(rows).toEqual([{ sent: events, characters: events * 1_000_000 }]);
  const { log } = runtime;
  const upTo = await log.horizon();
  const found: number[] = [];
  for (let after = beginning; after < upTo; ) {
    const page = await upcastEvents(log, letters.filter, after, upTo);
    found.push(page.events.length);
    // A part of a page that is known is not read again.
    expect((await upcastEvents(log, letters.filter, after, page.upTo, page)).events).toEqual(page.events);
    after = page.upTo;
  }
  expect(found.reduce((sum, count) => sum + count, 0)).toBe(events);
  expect(Math.max(...found)).toBeLessThan(20);
});
