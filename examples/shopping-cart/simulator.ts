import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, RefoldError } from '../../src/index.ts';
import { shoppers } from './shoppers.ts';

export interface TrafficOptions {
  readonly execute: (command: Command, input: unknown) => Promise<unknown>;
  /** Ends the traffic. */
  readonly signal: AbortSignal;
  /** Mean number of commands per second, each of which appends an event; they come at random times. @default 5 */
  readonly eventsPerSecond?: number;
  /** Determines the shoppers' actions and the ids of their carts. Two runs on one database need different seeds. @default random */
  readonly seed?: number;
}

/** Lets random shoppers use the shop until the signal aborts. A refused or failed command does not stop the others. */
export async function simulateTraffic(options: TrafficOptions): Promise<void> {
  const { execute, signal, eventsPerSecond = 5, seed = randomInt(2 ** 31) } = options;
  const actions = shoppers(seed);
  let accepted = true;
  let due = performance.now();
  while (!signal.aborted) {
    const { command, input } = actions.next(accepted).value;
    accepted = await succeeds(() => execute(command, input));
    // Independent shoppers come in exponential gaps. After a slow period, nothing catches up.
    due = Math.max(performance.now(), due + (-Math.log(1 - Math.random()) / eventsPerSecond) * 1000);
    const pause = Math.max(0, due - performance.now());
    await sleep(pause, undefined, { signal }).catch(() => {}); // rejects only when the signal aborts
  }
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    // A visitor may have changed the cart meanwhile, or the database may be unavailable for a moment.
    if (error instanceof RefoldError) return false;
    throw error;
  }
}
