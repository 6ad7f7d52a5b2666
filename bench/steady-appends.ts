import type { EventLog } from '../src/index.ts';
import { cart, itemAdded } from './carts.ts';

export interface SteadyAppends {
  /** Stops appending; returns how long each append took from its due time, in milliseconds. */
  stop(): Promise<readonly number[]>;
}

/** Appends at a fixed rate, whether or not the last append has ended, like independent clients. */
export function appendSteadily(log: EventLog, perSecond: number, streamOf: (number: number) => string): SteadyAppends {
  const start = performance.now();
  const took: number[] = [];
  const running = new Set<Promise<void>>();
  let sent = 0;
  const timer = setInterval(() => {
    for (; sent < ((performance.now() - start) / 1000) * perSecond; sent++) {
      const due = start + (sent * 1000) / perSecond;
      const append = log
        .append({ family: cart, streamId: streamOf(sent), events: [itemAdded] })
        .then(() => void took.push(performance.now() - due));
      running.add(append);
      void append.finally(() => running.delete(append));
    }
  }, 1);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(running);
      return took;
    },
  };
}
