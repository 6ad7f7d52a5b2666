import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, RefoldError } from '../../src/index.ts';
import { shoppers } from './shoppers.ts';

export interface TrafficOptions {
  readonly execute: (command: Command, input: unknown) => Promise<unknown>;
  /** Ends the traffic. */
  readonly signal: AbortSignal;
  /** Mean number of commands, and so of events, in a second; they come at random times. @default 5 */
  readonly eventsPerSecond?: number;
  /** What the shoppers do, and the ids of their carts; two runs on one database need two. @default drawn at random */
  readonly seed?: number;
}

/** Lets random shoppers use the shop until the signal says stop. Commands that are refused, or fail, stop nobody else. */
export async function simulateTraffic(options: TrafficOptions): Promise<void> {
  const { execute, signal, eventsPerSecond = 5, seed = randomInt(2 ** 31) } = options;
  const actions = shoppers(seed);
  let accepted = true;
  let due = performance.now();
  while (!signal.aborted) {
    const { command, input } = actions.next(accepted).value;
    accepted = await succeeds(() => execute(command, input));
    // Exponential gaps are what independent shoppers make. After a slow time nobody catches up.
    due = Math.max(performance.now(), due + (-Math.log(1 - Math.random()) / eventsPerSecond) * 1000);
    const pause = Math.max(0, due - performance.now());
    await sleep(pause, undefined, { signal }).catch(() => {}); // rejects only when the signal says stop
  }
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    // A visitor may have changed the cart meanwhile, or the database may be away for a moment.
    if (error instanceof RefoldError) return false;
    throw error;
  }
}
