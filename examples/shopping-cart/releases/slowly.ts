import { type Config, defineConfig, type Projection } from '../../../src/index.ts';

/**
 * A release that pauses before it folds an event, for PAUSE_MS milliseconds: a stand-in for a log of millions of events, to have time to look
 * at a build, and to kill it half-way.
 */
export function slowly({ projections, commands }: Config): Config {
  return defineConfig({
    projections: projections.map(paused),
    commands,
    runtime: { pageSize: 1, bufferedPages: 1 },
  });
}

function paused(projection: Projection): Projection {
  return Object.freeze({
    ...projection,
    apply(...given: Parameters<Projection['apply']>) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env.PAUSE_MS ?? 200));
      return projection.apply(...given);
    },
  });
}
