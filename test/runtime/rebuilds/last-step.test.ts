/** The last step of a rebuild: if its last events are too large for one page, and if the version leaves the appends meanwhile. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { beginning, defineConfig, defineEvents, defineProjection, t } from '../../../src/index.ts';
import type { BuildProgress } from '../../../src/runtime/processors/projection-processor.ts';
import { completeRebuild } from '../../../src/runtime/rebuilds/complete-rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { ProcessorClaim } from '../../../src/store/processors/checkpoints.ts';
import { announceLeave, readInlineVersions } from '../../../src/store/registry/inline-versions.ts';
import { reaches, settingOfEachTest } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const note = defineEvents('note', { Written: z.object({ body: z.string() }) });
const lengths = (mode: 'inline' | 'async') =>
  defineProjection({
    name: 'lengths',
    version: 1,
    events: note,
    mode,
    table: { noteId: t.text().primaryKey(), length: t.integer() },
    key: ({ streamId }) => streamId,
    evolve: { Written: (_, { payload: { body } }) => ({ length: body.length }) },
  });

const events = 40;
const setting = settingOfEachTest();

async function withLargeEvents(mode: 'inline' | 'async'): Promise<Runtime> {
  const runtime = await setting.start(defineConfig({ projections: [lengths(mode)] }));
  await until(async () =>
    (await runtime.status()).every(({ state, inline }) => state === 'active' && inline !== 'building'),
  );
  for (let n = 0; n < events; n++)
    await runtime.log.append({
      family: note,
      streamId: `n${n}`,
      events: [{ type: 'Written', payload: { body: '.'.repeat(1_000_000) } }],
    });
  if (mode === 'async') await reaches(runtime, lengths(mode), 'active');
  return runtime;
}

/** As the owner of a rebuild that has folded nothing, which folds with `finish`. */
const complete = ({ db, log, versions }: Runtime, mode: 'inline' | 'async', finish: BuildProgress['finish']) =>
  completeRebuild({
    db,
    log,
    readSchema: 'read_models',
    projection: versions.stored(lengths(mode)),
    claim: {} as ProcessorClaim, // it belongs to `finish`
    progress: { checkpoint: beginning, goal: beginning, finish },
    actor: 'test',
    deadLettersAccepted: false,
  });

test('of an inline version is put off, and none of them is lost', async () => {
  const runtime = await withLargeEvents('inline');
  const finished: bigint[] = [];
  const isComplete = await complete(runtime, 'inline', async (_, page) => {
    finished.push(...page.map(({ position }) => position));
    throw new Error('no event is folded');
  });
  expect({ isComplete, finished }).toEqual({ isComplete: false, finished: [] });
});

test('of an inline version that has left the appends since it was seen live begins when the leave has ended', async () => {
  const maintaining = await setting.start(defineConfig({ projections: [lengths('inline')] }));
  await until(async () => (await maintaining.status()).every(({ inline }) => inline === 'live'));
  await setting.stop(maintaining);
  const runtime = await setting.start(defineConfig({ projections: [lengths('inline')] }), { maintain: false });
  const { db, log } = runtime;
  let looked = 0;
  const left: Runtime = {
    ...runtime,
    db: {
      ...db,
      async transaction(work, options) {
        if (looked++ === 0) {
          await announceLeave(db, 'lengths', 1);
          const body = 'left out';
          await log.append({ family: note, streamId: 'n', events: [{ type: 'Written', payload: { body } }] });
        }
        return db.transaction(work, options);
      },
    },
  };
  const finished: unknown[] = [];
  const end = complete(left, 'inline', async (tx) => {
    finished.push(...(await readInlineVersions(tx)));
    throw new Error('the table stays');
  });
  await expect(end).rejects.toThrow('the table stays');
  expect(finished).toMatchObject([{ status: 'building' }]);
});

test('takes them page by page', async () => {
  const runtime = await withLargeEvents('async');
  const pages: number[] = [];
  const last = await runtime.log.horizon();
  const end = complete(runtime, 'async', async (_, page, upTo) => {
    pages.push(page.length);
    if (upTo >= last) throw new Error('the table stays');
  });
  await expect(end).rejects.toThrow('the table stays');
  expect(pages.reduce((sum, count) => sum + count, 0)).toBe(events);
  expect(Math.max(...pages)).toBeLessThan(20);
});
