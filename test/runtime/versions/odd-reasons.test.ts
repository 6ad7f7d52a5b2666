import { expect, test } from 'vitest';
import { defineConfig, defineProjection, defineReactor, t } from '../../../src/index.ts';
import { discardDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();

const failingV1 = defineProjection({
  name: 'failing',
  version: 1,
  events: account,
  onError: 'dead-letter',
  table: { accountId: t.text().primaryKey() },
  key: (event) => event.streamId,
  evolve: {
    Opened: () => {
      throw new Error('not now');
    },
  },
});
const greeting = defineReactor({
  name: 'greeting',
  events: account,
  from: 'beginning',
  handle: { async Opened() {} },
});

test('a step of an operator is done and recorded with a reason of any characters, such as what a program has caught', async () => {
  const runtime = await setting.start(defineConfig({ projections: [failingV1], reactors: [greeting] }));
  const { db, log } = runtime;
  await log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'ada' } }] });
  await until(async () => (await runtime.status())[0]?.deadLetters === 1);
  const step = { actor: 'ada', reason: `NUL \u0000, half a pair \ud83d, ${'long '.repeat(100_000)}` };
  const version = { db, readSchema: 'read_models', name: 'failing', version: 1 };
  await takeSnapshot(version, step);
  await discardDeadLetters({ db, log, readSchema: 'read_models', projection: failingV1 }, step);
  await runtime.lifecycle.pause('failing', 1, step);
  await runtime.lifecycle.resume('failing', 1, step);
  await runtime.reactors.pause('greeting', step);
  await runtime.rebuilds.request('failing@1', step);
  await until(async () => (await runtime.status())[0]?.rebuild === null);
  for (const table of ['transitions', 'reactor_operations', 'discards', 'table_snapshots']) {
    const rows = await db.query<{ reason: string }>({
      text: `select reason from refold.${table} where actor = 'ada' and length(reason) < 20000`,
    });
    expect([table, rows[0]?.reason]).toEqual([table, expect.stringMatching(/NUL \ufffd, half a pair \ufffd, long/)]);
  }
});
