import type { GlobalPosition } from '../../src/index.ts';
import type { EventLog } from '../../src/store/event-log.ts';
import { account } from './sample-domain.ts';
import { until } from './until.ts';

/** Appends to random accounts: every account is opened once, and some are closed, so rows appear, change and disappear. */
export async function traffic(log: EventLog, events: number, random: () => number): Promise<void> {
  const appends = Array.from({ length: events }, async () => {
    const streamId = `account-${Math.floor(random() * 300)}`;
    const amount = (random() * 100).toFixed(2);
    const draw = random();
    const event =
      draw < 0.1
        ? ({ type: 'Opened', payload: { owner: `owner-${Math.floor(random() * 20)}` } } as const)
        : draw < 0.13
          ? ({ type: 'Closed', payload: {} } as const)
          : draw < 0.6
            ? ({ type: 'Credited', payload: { amount } } as const)
            : ({ type: 'Debited', payload: { amount } } as const);
    await log.append({ family: account, streamId, events: [event] });
  });
  await Promise.all(appends);
}

/**
 * Appends for as long as `work` takes, without a pause, so a process that is killed meanwhile is in the middle of a batch. It waits as long as
 * readers are not near the head of the log: otherwise they would never catch up on a slow machine.
 */
export async function underTraffic(
  log: EventLog,
  random: () => number,
  isNear: (head: GlobalPosition) => Promise<boolean>,
  work: () => Promise<void>,
): Promise<void> {
  let working = true;
  const appends = (async () => {
    while (working) {
      await traffic(log, 20, random);
      const head = await log.head();
      await until(async () => !working || (await isNear(head)));
    }
  })();
  await work().finally(() => {
    working = false;
  });
  await appends;
}

/** mulberry32: a seed repeats a run's choices */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
