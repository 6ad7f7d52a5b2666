import { pino } from 'pino';
import { expect, test } from 'vitest';
import { defineConfig, globalPosition } from '../../../src/index.ts';
import { createProjectionUnits } from '../../../src/runtime/ownership/projection-units.ts';
import type { MaintainedProcessor, MaintainedUnit } from '../../../src/runtime/processors/maintained-unit.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { readWork } from '../../../src/store/ownership/work.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { balanceV1 } from '../../support/sample-domain.ts';

const setting = settingOfEachTest();

/** A runtime with a log of 200 events, whose units the test claims and feeds itself, as several processes do. */
async function underTest() {
  const runtime = await setting.start(defineConfig({ projections: [balanceV1] }), { maintain: false });
  const tables = { damageOf: () => null, damages: () => new Map(), look: async () => null };
  const options = { ...runtime, readSchema: 'read_models', projections: [balanceV1], tables, owner: 'test' };
  const units = createProjectionUnits({ ...options, logger: pino({ level: 'silent' }), freeze: true });
  await traffic(runtime.log, 200, seeded(3));
  await maintain(runtime, await claimed(runtime, await unitOf('processor')));

  async function unitOf(kind: MaintainedUnit['unit']['kind']): Promise<MaintainedUnit> {
    await runtime.versions.refresh();
    return units(await readWork(runtime.db)).find(({ unit }) => unit.kind === kind) ?? expect.unreachable();
  }
  return { runtime, unitOf, rebuild: () => requestRebuild(runtime.db, balanceV1, 'read_models', step) };
}

const step = { actor: 'ann', reason: 'a try' };

async function claimed({ db }: Runtime, { unit, start }: MaintainedUnit): Promise<MaintainedProcessor> {
  return start(db, await claimProcessor(db, unit, 'test'));
}

/** Feeds it the whole log. */
async function maintain({ log }: Runtime, processor: MaintainedProcessor, upTo?: bigint): Promise<string> {
  const horizon = await log.horizon();
  const read = { after: processor.checkpoint, upTo: globalPosition(upTo ?? horizon), filter: balanceV1.filter };
  const page = await log.readAll({ ...read, limit: 1000 });
  return processor.process({ ...page, after: read.after, horizon });
}

async function expectTrue({ db, log, versions }: Runtime): Promise<void> {
  await versions.refresh();
  expect(await storedTable(db, versions.stored(balanceV1))).toEqual(await foldedTable(log, balanceV1));
}

test('a process that knows an earlier rebuild of a version does not fold events of the next one into the table of the earlier', async () => {
  const { runtime, unitOf, rebuild } = await underTest();
  await rebuild();
  const earlier = await unitOf('rebuild');
  expect(await maintain(runtime, await claimed(runtime, earlier))).toBe('stop');
  await rebuild();
  await expect(claimed(runtime, earlier)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  await expectTrue(runtime);
  expect(await maintain(runtime, await claimed(runtime, await unitOf('rebuild')))).toBe('stop');
  await expectTrue(runtime);
});

test('a stalled owner of an earlier rebuild writes nothing and does not move the checkpoint of the next one', async () => {
  const { runtime, unitOf, rebuild } = await underTest();
  await rebuild();
  const stalled = await claimed(runtime, await unitOf('rebuild'));
  await maintain(runtime, stalled, 100n);
  expect(await maintain(runtime, await claimed(runtime, await unitOf('rebuild')))).toBe('stop');
  await rebuild();
  const next = await claimed(runtime, await unitOf('rebuild'));
  await expect(stalled.flush()).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  await expectTrue(runtime);
  expect(await maintain(runtime, next)).toBe('stop');
  await expectTrue(runtime);
});
