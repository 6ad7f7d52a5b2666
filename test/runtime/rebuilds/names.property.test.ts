import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import '../../support/seeded-properties.ts';
import { until } from '../../support/until.ts';

const step = { actor: 'ann', reason: 'a test' };
const longestName = 48;

/** A version whose table has indexes of every kind, some named like tables of other versions, others too long for an index's name. */
function named(name: string, version: number, mode: 'inline' | 'async'): Projection {
  const long = `n${'x'.repeat(62)}`;
  return defineProjection({
    ...{ name, version, mode, events: account },
    table: {
      accountId: t.text().primaryKey(),
      g2: t.integer().index(),
      pkey: t.integer().index(),
      bV1: t.integer().index(),
      [long]: t.text().unique(),
      [`${long.slice(0, -1)}y`]: t.text().index({ search: true }),
    },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => ({
        ...{ g2: 0, pkey: 0, bV1: 0 },
        [long]: event.streamId,
        [`${long.slice(0, -1)}y`]: event.payload.owner,
      }),
      Credited: (row) => row && { ...row, g2: Number(row.g2) + 1 },
    },
  });
}

const lengths = fc.record({ length: fc.integer({ min: 1, max: longestName }), inline: fc.boolean() });

test('names of any length: two versions, inline and not, stay apart through three rebuilds under appends', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(lengths, { minLength: 1, maxLength: 2 }), async (drawn) => {
      const longest = [true, false].map((inline) => ({ length: longestName, inline }));
      const names = new Map(
        [...longest, ...drawn].map(({ length, inline }) => [`${inline ? 'i' : 'a'}${'n'.repeat(length - 1)}`, inline]),
      );
      const versions = [...names].flatMap(([name, inline]) =>
        [9998, 9999].map((version) => named(name, version, inline ? 'inline' : 'async')),
      );
      const setting = await createRuntimeSetting();
      const runtime = await setting.start(defineConfig({ events: [account], projections: versions }));
      const stream = `s-${Math.random()}`;
      const credit = () =>
        runtime.log.append({
          family: account,
          streamId: stream,
          events: [{ type: 'Credited', payload: { amount: '1' } }],
        });
      await runtime.log.append({
        family: account,
        streamId: stream,
        events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
      });
      for (const generation of [2, 3, 4]) {
        await until(async () => (await runtime.status()).every(({ lag, state }) => lag === 0n && state !== 'building'));
        for (const projection of versions) await requestRebuild(runtime.db, projection, 'read_models', step);
        await until(async () => {
          await credit();
          return (await readRebuilds(runtime.db)).length === 0;
        });
        await runtime.versions.refresh();
        for (const version of versions)
          expect(runtime.versions.stored(version).tableName).toBe(`${version.tableName}_g${generation}`);
      }
      await credit();
      await until(async () => (await runtime.status()).every(({ lag }) => lag === 0n));
      for (const version of versions) {
        const stored = runtime.versions.stored(version);
        expect(await storedTable(runtime.db, stored), version.id).toEqual(await foldedTable(runtime.log, version));
        const [indexes] = await runtime.db.query<{ count: number }>({
          text: `select count(*)::int from pg_indexes where schemaname = 'read_models' and tablename = $1`,
          values: [stored.tableName],
        });
        expect(indexes).toEqual({ count: 7 });
      }
      await setting.close();
    }),
    { numRuns: effort(6, 1), endOnFailure: true },
  );
});
