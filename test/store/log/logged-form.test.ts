/** A fold that reads an event before it is written sees what every reader of the log sees. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  beginning,
  defineConfig,
  defineEvents,
  defineProjection,
  defineState,
  type EventMetadata,
  t,
} from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { registered, settingOfEachTest } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const noted = defineEvents('noted', { Noted: z.record(z.string(), z.json()) });

// An evolve that goes over the keys: their order is in the row.
const inOrder = (name: string, mode?: 'inline') =>
  defineProjection({
    name,
    version: 1,
    events: noted,
    table: { id: t.text().primaryKey(), seen: t.text() },
    ...(mode ? { mode } : {}),
    key: ({ streamId }) => streamId,
    evolve: {
      Noted: (row, { payload, metadata }) => ({
        seen: `${row?.seen ?? ''}${JSON.stringify([Object.entries(payload), metadata])}`,
      }),
    },
  });
const inline = inOrder('noted_inline', 'inline');
const later = inOrder('noted_async');
const state = defineState(noted, () => '', {
  Noted: (seen, { payload, metadata }) => `${seen}${JSON.stringify([Object.entries(payload), metadata])}`,
});

const storable = (text: string) => text.isWellFormed() && !text.includes('\u0000');
const name = fc.oneof(
  fc.constantFrom(
    'b',
    'a',
    '10',
    '9',
    '-1',
    '01',
    'unit',
    'ä',
    '🛒',
    '__proto__',
    'toJSON',
    'constructor',
    'length',
    '',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }).filter(storable),
);
const scalar = fc.oneof(
  fc.constantFrom(0, -0, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, 1e19, 0.1, null, true, '\\u0000'),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: 'binary', maxLength: 6 }).filter(storable),
);
const { object } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, scalar, fc.array(tie('value'), { maxLength: 4 }), tie('object')),
  object: fc.dictionary(name, tie('value'), { maxKeys: 6, noNullPrototype: false }),
}));
const payloads = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), object, object), { minLength: 20, maxLength: 60 });

test('whatever the payload: a row folded inline, async, from the log and in a rebuild is the same, as is the state of its stream', async () => {
  const runtime = await setting.start(defineConfig({ projections: [inline, later] }));
  const { log, db } = runtime;
  await until(async () => (await runtime.status()).some(({ inline: how }) => how === 'live'));
  await fc.assert(
    fc.asyncProperty(payloads, async (given) => {
      for (const [streamId, payload, metadata] of given) {
        const events = [
          { type: 'Noted' as const, payload: payload as Record<string, never>, metadata: metadata as EventMetadata },
        ];
        const {
          events: [written],
        } = await log.append({ family: noted, streamId, events });
        const page = await log.readAll({
          after: beginning,
          upTo: await log.head(),
          filter: later.filter,
          limit: 10_000,
        });
        expect(JSON.stringify(page.events.at(-1), bigints)).toBe(JSON.stringify(written, bigints));
      }
    }),
    { numRuns: effort(3, 1) },
  );
  const folded = await foldedTable(log, inline);
  expect(await storedTable(db, inline)).toEqual(folded);
  const horizon = await log.horizon();
  await until(async () => ((await registered(runtime, later))?.checkpoint ?? 0n) >= horizon);
  expect(await storedTable(db, later)).toEqual(folded);
  for (const [key, row] of folded) {
    const [id] = JSON.parse(key);
    expect((await log.stateOf(state, id)).state).toBe((row as { seen: string }).seen);
  }
  await requestRebuild(db, inline, 'read_models', { actor: 'ann', reason: 'compare' });
  const rebuilt = await until(async () => {
    const found = await registered(runtime, inline);
    return (
      found &&
      found.tableName !== inline.tableName &&
      (await runtime.status()).some(({ inline: how }) => how === 'live') &&
      found
    );
  });
  expect(await storedTable(db, { ...inline, tableName: rebuilt.tableName } as typeof inline)).toEqual(folded);
});

const bigints = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
