import { afterAll } from 'vitest';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

/** A runtime for all tests of the file, over the log of some accounts, and ways to append to it. */
export async function runtimeOverAccounts(
  projections: readonly Projection[],
  accounts: number,
  ownerOf: (id: number) => string,
) {
  const { start, close } = await createRuntimeSetting();
  afterAll(close);
  const runtime = await start(defineConfig({ projections }));
  for (let id = 0; id < accounts; id++)
    await runtime.log.append({
      family: account,
      streamId: `account-${id}`,
      events: [
        { type: 'Opened', payload: { owner: ownerOf(id) } },
        { type: 'Credited', payload: { amount: '10.50' } },
      ],
    });
  await caughtUp();

  async function caughtUp(): Promise<void> {
    const horizon = await runtime.log.horizon();
    await until(async () => (await runtime.status()).every(({ position }) => position >= horizon));
  }

  /** Credits one account after another while `work` runs, and waits for the rows: what a test then changes by hand is not folded over. */
  async function whileCrediting(work: () => Promise<void>): Promise<void> {
    let working = true;
    const appends = (async () => {
      for (let n = 0; working; n++)
        await runtime.log.append({
          family: account,
          streamId: `account-${n % accounts}`,
          events: [{ type: 'Credited', payload: { amount: '1' } }],
        });
    })();
    await work().finally(() => {
      working = false;
    });
    await appends;
    await caughtUp();
  }

  return { runtime, whileCrediting };
}
