import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { goLive } from '../../../src/runtime/activation/go-live.ts';
import { createRuntimeMetrics } from '../../../src/runtime/monitoring/metrics.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { createLifecycle, type Lifecycle } from '../../../src/runtime/versions/lifecycle.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  open,
  statusOf,
  untilLive,
} from '../../support/inline-setting.ts';
import { balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { readTransitions } from '../../support/transitions.ts';
import { until } from '../../support/until.ts';

let setting: InlineSetting;
let db: Database;
let lifecycle: Lifecycle;

beforeEach(async () => {
  setting = await createInlineSetting();
  db = createDatabase({ url: setting.database.url });
  lifecycle = createLifecycle(db, 'read_models', defineConfig({ projections: [balanceV1, balanceV2] }));
});
afterEach(async () => {
  await db.close();
  await setting.close();
});

const ada = { actor: 'ada', reason: 'disk is full' };
const pausedByAda = { paused: { by: 'ada', reason: 'disk is full', since: expect.any(String) } };

const isActive = (runtime: Runtime, projection: Projection) =>
  until(async () => (await statusOf(runtime, projection))?.state === 'active');
const reachesHead = (runtime: Runtime, projection: Projection) =>
  until(async () => (await statusOf(runtime, projection))?.lagEvents === 0n);
const isReleased = (runtime: Runtime, projection: Projection) =>
  until(async () => (await statusOf(runtime, projection))?.owner === null);

test('nobody maintains a paused version, also after a restart, while others go on; resumed, it continues where it was', async () => {
  const runtime = await setting.start([balanceV1, balanceV2]);
  await isActive(runtime, balanceV2);
  await open(runtime, 'a');
  await reachesHead(runtime, balanceV2);
  await lifecycle.pause('balance', 2, ada);
  const at = (await statusOf(runtime, balanceV2))?.position;
  await runtime.log.append(creditOf('a'));
  await reachesHead(runtime, balanceV1);
  expect(await statusOf(runtime, balanceV2)).toMatchObject({ ...pausedByAda, state: 'active', position: at });
  await setting.stop(runtime);

  const restarted = await setting.start([balanceV1, balanceV2]);
  await restarted.log.append(creditOf('a'));
  await reachesHead(restarted, balanceV1);
  expect(await statusOf(restarted, balanceV2)).toMatchObject({ ...pausedByAda, owner: null, position: at });
  const metrics = await createRuntimeMetrics(restarted).metrics();
  expect(metrics).toContain('refold_version_paused{projection="balance",version="1"} 0\n');
  expect(metrics).toContain('refold_version_paused{projection="balance",version="2"} 1\n');
  expect(await db.query({ text: 'select paused from refold.lag order by version' })).toEqual([
    { paused: false },
    { paused: true },
  ]);
  expect(await restarted.positions.progress(balanceV2)).toMatchObject({ paused: true, position: at });

  await lifecycle.resume('balance', 2, { actor: 'bo', reason: 'disk is larger' });
  await reachesHead(restarted, balanceV2);
  await expectRight(restarted, balanceV2);
  expect(await statusOf(restarted, balanceV2)).toMatchObject({ paused: null, state: 'active' });
  const last = (await readTransitions(db, { name: 'balance', version: 2, limit: 2 })).map(({ actor, reason }) => [
    actor,
    reason,
  ]);
  expect(last).toEqual([
    ['ada', 'paused: disk is full'],
    ['bo', 'resumed: disk is larger'],
  ]);
});

test('an owner that has not heard of a pause commits nothing more, and a claim after it is given up', async () => {
  const runtime = await setting.start([balanceV1]);
  await isActive(runtime, balanceV1);
  const claim = await claimProcessor(db, { kind: 'processor', name: 'balance', version: 1, partition: 0 }, 'silent');
  await lifecycle.pause('balance', 1, ada);
  const [processor] = await db.query<{ epoch: bigint; owner: string | null }>({
    text: 'select epoch, owner from refold.processors',
  });
  expect(processor?.epoch).toBeGreaterThan(claim.epoch);
  await isReleased(runtime, balanceV1);
  const { position } = await runtime.log.append(creditOf('a'));
  await expect(runtime.positions.waitFor(balanceV1, position, { timeout: 1 })).rejects.toMatchObject({
    code: 'POSITION_TIMEOUT',
  });
});

test('a paused version is not activated: by its own condition, by an operator, by a rollback or as a canary', async () => {
  const manual = { ...balanceV2, activation: { ...balanceV2.activation, minReadySeconds: 3600 } };
  const runtime = await setting.start([balanceV1, manual]);
  await until(async () => (await statusOf(runtime, manual))?.state === 'ready');
  await lifecycle.pause('balance', 2, ada);
  const refusal = {
    code: 'INVALID_TRANSITION',
    message: expect.stringMatching(
      /^balance@2 is paused since .* by ada \(disk is full\), so its rows are not current\. Run 'refold resume balance@2' first\.$/,
    ),
  };
  await expect(lifecycle.activate('balance', 2, ada)).rejects.toMatchObject(refusal);
  await expect(lifecycle.startCanary('balance', 2, { percent: 5 }, ada)).rejects.toMatchObject(refusal);
  expect(await lifecycle.becomeActive(balanceV2, ada)).toBe('ready');
  await expect(lifecycle.pause('balance', 2, ada)).rejects.toThrow('balance@2 is paused already, since ');
  await lifecycle.resume('balance', 2, ada);
  await expect(lifecycle.resume('balance', 2, ada)).rejects.toThrow('balance@2 is not paused.');
  await lifecycle.activate('balance', 2, ada);
  await lifecycle.pause('balance', 1, ada);
  await expect(lifecycle.rollback('balance', ada)).rejects.toThrow(/^balance@1 is paused/);
  expect(await statusOf(runtime, balanceV2)).toMatchObject({ state: 'active' });
});

test('a paused version that is being built is built no further', async () => {
  const gateway = await setting.start([], { maintain: false });
  await open(gateway, 'a'); // on an empty log there is nothing to build
  const declaring = await setting.start([balanceV1], { maintain: false });
  await lifecycle.pause('balance', 1, ada);
  await setting.stop(declaring);
  const worker = await setting.start([balanceV1, balanceV2]);
  await isActive(worker, balanceV2);
  await reachesHead(worker, balanceV2);
  expect(await statusOf(worker, balanceV1)).toMatchObject({ ...pausedByAda, state: 'building', position: 0n });
  await lifecycle.resume('balance', 1, ada);
  await isActive(worker, balanceV1);
});

test('a paused inline version leaves the appends, and joins them again when it is resumed', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  const { name, version } = inlineBalance;
  await lifecycle.pause(name, version, ada);
  const { position } = await runtime.log.append(creditOf('a'));
  const paused = await statusOf(runtime, inlineBalance);
  expect(paused).toMatchObject({ ...pausedByAda, inline: 'building' });
  expect(paused?.position).toBeLessThan(position);
  const parts = { db, log: runtime.log, readSchema: 'read_models', freeze: false };
  expect(await goLive(parts, inlineBalance)).toBeNull();
  await lifecycle.resume(name, version, ada);
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
});
