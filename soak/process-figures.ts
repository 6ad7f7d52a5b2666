/**
 * Loaded before the program of a process that is watched: tells the one that started it, once a second, what the process takes, and
 * collects all garbage where it is asked to.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface ProcessFigures {
  readonly kind: 'figures';
  /** Bytes. */
  readonly rss: number;
  /** Bytes that the last collection of all garbage left; undefined before the first. */
  readonly heap: number | undefined;
  /** Milliseconds, in the last second. */
  readonly delayP99: number;
}

const resolution = 10;

if (process.send) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  let heap: number | undefined;
  process.on('message', (message) => {
    if (message !== 'collect') return;
    collect();
    heap = process.memoryUsage().heapUsed;
  });
  process.channel?.unref();
  setInterval(() => {
    // The timer itself comes so late by rights.
    const delayP99 = Math.max(0, delays.percentile(99) / 1e6 - resolution);
    delays.reset();
    const figures: ProcessFigures = { kind: 'figures', rss: process.memoryUsage.rss(), heap, delayP99 };
    if (process.connected) process.send?.(figures, undefined, {}, () => {});
  }, 1000).unref();
}
