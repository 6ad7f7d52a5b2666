import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';
import { noteV1 } from './large-rows.ts';

// The rows alone take nearly the whole heap. They are texts that repeat themselves: the disk holds little of them.
const rows = 120;
const heap = 128;

const setting = settingOfEachTest();

test('rows of 1 MB are compared with their events, whatever their number, in a heap of 128 MB', async () => {
  const { database } = setting;
  const runtime = await setting.start(defineConfig({ projections: [noteV1] }));
  await until(async () => (await runtime.status()).every(({ state }) => state === 'active'));
  await setting.stop(runtime);
  // Written by the server, which is quicker than a processor. One row differs, and one lacks its event.
  await database.administer(`
    insert into refold.events (family, stream_id, stream_position, type, payload)
    select 'note', 'n' || n, 1, 'Written', jsonb_build_object('body', repeat(md5(n::text), 32768))
    from generate_series(1, ${rows}) n;
    insert into read_models.note_v1 (note_id, body)
    select 'n' || n, repeat(md5(case n when 7 then 'other' else n::text end), 32768) from generate_series(1, ${rows + 1}) n;
    update refold.processors set checkpoint = (select max(position) from refold.events) where name = 'note'`);
  const flags = [`--max-old-space-size=${heap}`, join(import.meta.dirname, 'large-rows.ts'), database.url];
  expect(execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim()).toBe(`${rows + 1} compared, 2 differ`);
});
