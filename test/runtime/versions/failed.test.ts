import { expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import { createRuntimeMetrics } from '../../../src/runtime/monitoring/metrics.ts';
import type { VersionStatus } from '../../../src/runtime/monitoring/status.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;

function start(owner: string, ...projections: readonly Projection[]): Promise<Runtime> {
  return setting.start(defineConfig({ projections, events: [account] }), { owner });
}

/** Counts credits. A `bad` one can't be counted. */
function credits(version: number, bad: string | null, partitions = 1): Projection {
  const table = { accountId: t.text().primaryKey(), credits: t.integer() };
  // 0: a partition that stops near the head is not near enough.
  const shared = { name: 'credits', version, events: account, table, partitions, activation: { maxLag: 0 } } as const;
  const key = (event: { readonly streamId: string }) => event.streamId;
  if (bad === null)
    return defineProjection({
      ...shared,
      key,
      evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }) },
    });
  return defineProjection({
    ...shared,
    key,
    evolve: {
      Credited: (row, event) => {
        if (event.payload.amount === bad) throw new Error('bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
  });
}

async function credit(runtime: Runtime, streamId: string, ...amounts: readonly string[]): Promise<void> {
  const events = amounts.map((amount) => ({ type: 'Credited', payload: { amount } }) as const);
  await runtime.log.append({ family: account, streamId, events });
}

async function status(runtime: Runtime, version: number): Promise<VersionStatus | undefined> {
  return (await runtime.status()).find((one) => one.version === version);
}

const becomes = (runtime: Runtime, version: number, state: string) =>
  until(async () => (await status(runtime, version))?.state === state);

async function steps(runtime: Runtime, version: number): Promise<string[]> {
  const rows = await runtime.db.query<{ step: string }>({
    text: `select concat_ws(' ', coalesce(from_state, '-'), to_state, actor) as step
      from refold.transitions where version = $1 order by id`,
    values: [version],
  });
  return rows.map(({ step }) => step);
}

test('a building version that stops at an event is failed, and continues with fixed code', async () => {
  const first = await start('one', credits(1, null));
  await credit(first, 'a', '1', '13', '2');
  await stop(first);

  const runtime = await start('two', credits(1, null), credits(2, '13'));
  await becomes(runtime, 2, 'failed');
  expect(await status(runtime, 2)).toMatchObject({
    processor: 'stopped',
    error: { message: "credits@2: evolve of 'Credited' failed at position 2 (stream 'a', event 2): bad luck" },
  });
  const [last] = await runtime.db.query<{ actor: string; reason: string }>({
    text: `select actor, reason from refold.transitions where to_state = 'failed'`,
  });
  expect(last).toEqual({ actor: 'two', reason: expect.stringContaining('bad luck') });
  const metrics = await createRuntimeMetrics(runtime).metrics();
  expect(metrics).toContain('refold_version_failed{projection="credits",version="2"} 1');
  expect(metrics).toContain('refold_version_failed{projection="credits",version="1"} 0');
  await expect(runtime.lifecycle.activate('credits', 2, { actor: 'ann', reason: 'now' })).rejects.toThrow(
    "credits@2 has failed; 'refold status' says why. It continues when the cause is fixed.",
  );
  expect(runtime.versions.current().served.get('credits')).toMatchObject({
    state: 'active',
    projection: { version: 1 },
  });
  await stop(runtime);

  const mended = await start('three', credits(1, null), credits(2, null));
  await becomes(mended, 2, 'active');
  expect(await steps(mended, 2)).toEqual([
    '- building two',
    'building failed two',
    'failed building three',
    'building ready three',
    'ready active three',
  ]);
});

test('an answering version that stops at an event stays active', async () => {
  const runtime = await start('one', credits(1, '13'));
  await credit(runtime, 'a', '1', '13', '2');
  await until(async () => (await status(runtime, 1))?.processor === 'stopped');
  expect(await status(runtime, 1)).toMatchObject({ state: 'active', position: 1n });
  expect(await steps(runtime, 1)).not.toContain('active failed one');
});

test('a process with other code takes over a failed version while the process that owns it lives on', async () => {
  const old = await start('old', credits(1, null));
  await credit(old, 'a', '1', '13', '2');
  await stop(old);
  const failing = await start('failing', credits(1, null), credits(2, '13'));
  await becomes(failing, 2, 'failed');
  const mended = await start('mended', credits(1, null), credits(2, null));
  await becomes(mended, 2, 'active');
  expect((await status(mended, 2))?.owner).toBe('mended');
  expect(await steps(failing, 2)).toContain('failed building mended');
});

test('a stopped partition fails its version once, and the others continue', async () => {
  const streams = Array.from({ length: 12 }, (_, index) => `account-${index}`);
  const first = await start('one', credits(1, null));
  for (const stream of streams) await credit(first, stream, '1');
  await credit(first, 'account-3', '13');
  await credit(first, 'account-4', '13');
  await stop(first);
  const runtime = await start('two', credits(1, null), credits(2, '13', 3));
  const head = await runtime.log.head();
  await until(async () => {
    const { partitions = [], state } = (await status(runtime, 2)) ?? {};
    return (
      state === 'failed' && partitions.every(({ processor, position }) => processor === 'stopped' || position >= head)
    );
  });
  expect((await steps(runtime, 2)).filter((step) => step === 'building failed two')).toHaveLength(1);
  await stop(runtime);
  const mended = await start('three', credits(1, null), credits(2, null, 3));
  await becomes(mended, 2, 'active');
});
