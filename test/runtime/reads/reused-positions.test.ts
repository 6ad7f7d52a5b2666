import { expect, test } from 'vitest';
import { defineConfig, type GlobalPosition } from '../../../src/index.ts';
import { waitForRows } from '../../../src/runtime/reads/wait-for-rows.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { readAllRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

/** The log is in another database than the rows, and is restored without its last events. Nothing maintains the rows then, so nobody notices. */
const setting = settingOfEachTest('apart');
const config = defineConfig({ projections: [balanceV1] });

async function open({ log }: Runtime, streamId: string): Promise<GlobalPosition> {
  const events = [{ type: 'Opened', payload: { owner: 'Ada' } }] as const;
  return (await log.append({ family: account, streamId, events })).position;
}

async function loseLastEvent(): Promise<void> {
  await setting.database.administer(`
    alter table refold.events disable trigger events_are_immutable;
    delete from refold.events where position = (select max(position) from refold.events);
    delete from refold.streams where stream_id not in (select stream_id from refold.events);
    select setval('refold.events_position_seq', (select max(position) from refold.events));
    alter table refold.events enable trigger events_are_immutable`);
}

const isThere = ({ db, positions, versions }: Runtime, position: GlobalPosition) =>
  waitForRows({ db, positions, signal: AbortSignal.timeout(60_000) }, versions.stored(balanceV1), position);

test.each([
  ['that a batch has reached', false],
  ['at which a rebuild took over', true],
])('a position %s does not count as reached once the log has lost its event and gives the position again', async (_, isRebuilt) => {
  const worker = await setting.start(config);
  await open(worker, 'a');
  const reached = await open(worker, 'lost');
  await worker.positions.waitFor(worker.versions.stored(balanceV1), reached);
  if (isRebuilt) {
    await requestRebuild(worker.db, balanceV1, 'read_models', { actor: 'ann', reason: 'a try' });
    await until(async () => (await readAllRebuilds(worker.db)).length === 0);
  }
  await setting.stop(worker);
  const gateway = await setting.start(config, { maintain: false });
  expect(await isThere(gateway, reached)).toBe('whole');
  await loseLastEvent();
  expect(await open(gateway, 'b')).toBe(reached);
  await expect(isThere(gateway, reached)).rejects.toMatchObject({
    code: 'POSITION_TIMEOUT',
    message: `balance@1 did not reach position ${reached} because its rows are those of events that the log has lost; it is at 0. Ask again, or without demanding a position.`,
  });
});
