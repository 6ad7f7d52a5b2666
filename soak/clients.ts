import { setTimeout as pause } from 'node:timers/promises';

/** Clients that perform one step after another, each at its own pace. They can be paused. */
export interface Clients {
  add(step: () => Promise<void>, everyMs: number): void;
  /** Waits for steps under way; begins none until `resume`. */
  hold(): Promise<void>;
  resume(): void;
  /** Permanently. */
  stop(): Promise<void>;
}

export function createClients(onError: (error: unknown) => void): Clients {
  const loops: Promise<void>[] = [];
  const underWay = new Set<Promise<void>>();
  let gate = Promise.withResolvers<void>();
  let isOver = false;

  async function loop(step: () => Promise<void>, everyMs: number): Promise<void> {
    for (await gate.promise; !isOver; await gate.promise) {
      const start = performance.now();
      const one = step().catch(onError);
      underWay.add(one);
      await one;
      underWay.delete(one);
      await pause(Math.max(0, everyMs - (performance.now() - start)));
    }
  }

  return {
    add: (step, everyMs) => void loops.push(loop(step, everyMs)),
    async hold() {
      gate = Promise.withResolvers();
      await Promise.all(underWay);
    },
    resume: () => gate.resolve(),
    async stop() {
      isOver = true;
      gate.resolve();
      await Promise.all(loops);
    },
  };
}
