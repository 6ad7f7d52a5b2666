import { pino } from 'pino';
import { defineConfig, type Projection } from '../src/index.ts';
import { type Runtime, startRuntime } from '../src/runtime/runtime.ts';
import { cart } from './carts.ts';

/** Starts the maintenance of read models in this process, as `refold start --role worker` does. */
export function startWorker(url: string, projections: readonly Projection[]): Promise<Runtime> {
  return startRuntime({
    config: defineConfig({ projections, events: [cart], database: { url } }),
    url,
    owner: 'bench',
    development: false,
    maintain: true,
    logger: pino({ level: 'warn' }, pino.destination(2)),
  });
}

/** Resolves when all versions are active. */
export function untilActive({ versions }: Runtime, projections: readonly Projection[]): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!projections.every(({ name, version }) => versions.stateOf(name, version) === 'active')) return;
      stop();
      resolve();
    };
    const stop = versions.onChange(look);
    look();
  });
}

/** Seconds from the start of a process that declares new versions until they are active, with tables, rows and indexes. */
export async function buildByRefold(url: string, projections: readonly Projection[]): Promise<number> {
  const start = performance.now();
  const runtime = await startWorker(url, projections);
  await untilActive(runtime, projections);
  const seconds = (performance.now() - start) / 1000;
  await runtime.stop();
  return seconds;
}
