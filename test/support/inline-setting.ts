import { expect } from 'vitest';
import { defineConfig, type Projection } from '../../src/index.ts';
import { goLive } from '../../src/runtime/activation/go-live.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { isHeld } from '../../src/runtime/versions/leave-inline.ts';
import { isOutage } from '../../src/store/postgres/database-errors.ts';
import { foldedTable, storedTable } from './folded-table.ts';
import { createRuntimeSetting, type RuntimeSetting } from './runtime-setting.ts';
import { account, credit, openAccount } from './sample-domain.ts';
import { until } from './until.ts';

/** A database and the processes of one test, with common queries. */
export interface InlineSetting extends Omit<RuntimeSetting, 'start'> {
  start(projections: readonly Projection[], options?: { maintain?: boolean; development?: boolean }): Promise<Runtime>;
  close(): Promise<void>;
}

export async function createInlineSetting({ defaultLimits = false } = {}): Promise<InlineSetting> {
  const setting = await createRuntimeSetting();
  return {
    ...setting,
    start(projections, options) {
      const config = defineConfig({
        projections,
        events: [account],
        commands: [openAccount, credit],
        runtime: { pageSize: 200 },
        // On a busy machine many appends wait for one row, one after the other.
        database: defaultLimits ? {} : { appendLockTimeout: 300_000 },
      });
      return setting.start(config, options);
    },
  };
}

export async function statusOf(runtime: Runtime, { name, version }: Projection) {
  return (await runtime.status()).find((entry) => entry.name === name && entry.version === version);
}

export async function untilLive(runtime: Runtime, ...projections: readonly Projection[]): Promise<void> {
  for (const projection of projections)
    await until(async () => (await statusOf(runtime, projection))?.inline === 'live');
}

/**
 * Makes a version join the appends without a processor, and returns the position. On a busy machine, the server may end attempts of a process
 * that is too slow, as any gateway or worker expects.
 */
export async function joined(options: Parameters<typeof goLive>[0], projection: Projection): Promise<bigint> {
  const { position } = await until(async () => {
    const position = await goLive(options, projection).catch((error) =>
      isHeld(error) || isOutage(error) ? null : Promise.reject(error),
    );
    return position !== null && { position };
  });
  return position;
}

/** Expects its current table to equal the fold of the log. */
export async function expectRight(runtime: Runtime, projection: Projection): Promise<void> {
  await runtime.versions.refresh();
  const stored = runtime.versions.stored(projection);
  expect(await storedTable(runtime.db, stored), projection.id).toEqual(await foldedTable(runtime.log, projection));
}

export function open({ log }: Pick<Runtime, 'log'>, streamId: string, owner = 'Ada') {
  return log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner } }] });
}

export function creditOf(streamId: string, amount = '1.00') {
  return { family: account, streamId, events: [{ type: 'Credited', payload: { amount } }] } as const;
}
