import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { readRows } from '../../../src/runtime/inspection/rows.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createStoreFinder } from '../../../src/runtime/stores/steps-of-stores.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const file = defineEvents('file', { Uploaded: z.object({ body: z.string() }) });
const fileV1 = defineProjection({
  name: 'file',
  version: 1,
  events: file,
  table: { fileId: t.text().primaryKey(), body: t.text() },
  key: ({ streamId }) => streamId,
  evolve: { Uploaded: (_, { payload: { body } }) => ({ body }) },
});
const config = defineConfig({ projections: [fileV1], events: [file] });
const ids = Array.from({ length: 12 }, (_, n) => `file ${String(n).padStart(2, '0')}`);

let setting: Awaited<ReturnType<typeof createRuntimeSetting>>;
let runtime: Runtime;
beforeAll(async () => {
  setting = await createRuntimeSetting();
  runtime = await setting.start(config);
  const body = randomBytes(750_000).toString('base64'); // does not compress
  for (const streamId of ids)
    await runtime.log.append({ family: file, streamId, events: [{ type: 'Uploaded', payload: { body } }] });
  const horizon = await runtime.log.horizon();
  await until(async () => (await runtime.status())[0]?.position === horizon);
});
afterAll(() => setting.close());

test('the list of rows goes on after a page that ends early because its rows are large', async () => {
  const { db, log, stores } = runtime;
  const application = { db, log, stores, config, find: createStoreFinder(stores, config) } as Parameters<
    typeof readRows
  >[0]; // what the list of rows needs
  const keys: unknown[] = [];
  let pages = 0;
  let after: unknown;
  do {
    const { rows, next } = await readRows(application, fileV1.id, 20, after);
    keys.push(...rows.map(({ key }) => key));
    after = next ?? undefined;
    pages++;
  } while (after !== undefined);
  expect(keys).toEqual(ids);
  expect(pages).toBeGreaterThan(1);
});
