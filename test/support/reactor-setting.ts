import { defineConfig, type Reactor } from '../../src/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { createRuntimeSetting, type RuntimeSetting } from './runtime-setting.ts';
import { account } from './sample-domain.ts';
import { until } from './until.ts';

/** A database and the processes of one test of reactors. */
export interface ReactorSetting extends Omit<RuntimeSetting, 'start'> {
  start(reactors: readonly Reactor[], options?: { maintain?: boolean; stopTimeout?: number }): Promise<Runtime>;
  close(): Promise<void>;
}

export async function createReactorSetting(): Promise<ReactorSetting> {
  const setting = await createRuntimeSetting();
  return {
    ...setting,
    start(reactors, { stopTimeout = 10_000, ...options } = {}) {
      const config = defineConfig({
        events: [account],
        reactors,
        runtime: { polling: { min: 10, max: 50 }, stopTimeout },
      });
      return setting.start(config, options);
    },
  };
}

export async function append({ log }: Runtime, streamId: string, ...amounts: string[]): Promise<void> {
  for (const amount of amounts)
    await log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount } }] });
}

/** The status of the only reactor. */
export async function status({ reactors }: Runtime) {
  return (await reactors.status())[0];
}

/** Waits until the only reactor has handled all events. */
export async function settled(runtime: Runtime): Promise<void> {
  const head = await runtime.log.head();
  await until(async () => ((await status(runtime))?.position ?? -1n) >= head);
}
