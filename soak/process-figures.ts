/**
 * Preloaded in a watched process: reports the process's figures to its parent once a second, and
 * collects all garbage when the parent asks for it.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface ProcessFigures {
  readonly kind: 'figures';
  /** Bytes. */
  readonly rss: number;
  /** Bytes that the last full garbage collection left; undefined before the first. */
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
    // The timer itself is this late by design.
    const delayP99 = Math.max(0, delays.percentile(99) / 1e6 - resolution);
    delays.reset();
    const figures: ProcessFigures = { kind: 'figures', rss: process.memoryUsage.rss(), heap, delayP99 };
    if (process.connected) process.send?.(figures, undefined, {}, () => {});
  }, 1000).unref();
}
