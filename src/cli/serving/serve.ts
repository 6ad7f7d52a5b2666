import type { Config } from '../../config/define-config.ts';
import { createLogger, logOptions } from '../../logger.ts';
import { createReloadableRefold, type Refold, type RefoldOptions, type ReloadableRefold } from '../../refold.ts';
import { createOutput, type Output } from './output.ts';

export interface ServeOptions extends Omit<RefoldOptions, 'logger'> {
  /** Returns the message to print once everything runs. */
  announce(refold: Refold): string;
  /** Runs in addition to the application until the signal aborts. */
  readonly beside?: (refold: ReloadableRefold, signal: AbortSignal, output: Output) => Promise<void>;
}

// In milliseconds. Longer than the gateway and a batch need on a busy machine, and less than the 30 seconds after which Kubernetes and
// others kill. After that something hangs, and the operator should not wait longer. It includes the default drain time; a longer drain is
// added.
const stopTimeoutMs = 25_000;
const drainWithin = 5;

/** Runs an application until SIGINT or SIGTERM, then stops it in order. A second signal ends it at once. */
export async function serve(config: Config, { announce, beside, ...options }: ServeOptions): Promise<void> {
  const log = logOptions(process.env, process.stdout.isTTY);
  const logger = createLogger({ ...log, projections: config.projections });
  const output = createOutput(logger, log.format);
  const ending = new AbortController();
  // Installed before the start: without a listener, a signal would end the process and leave an embedded server behind.
  const longest = stopTimeoutMs + Math.max(0, (config.gateway.drainSeconds ?? 0) - drainWithin) * 1000;
  const signaled = signal(output).then(() => {
    setTimeout(() => {
      logger.error(`not stopped within ${longest / 1000} s`);
      process.exit(1);
    }, longest).unref();
    ending.abort();
  });
  const refold = await createReloadableRefold(config, { ...options, logger });
  if (!ending.signal.aborted) {
    output.announce(announce(refold));
    const work = beside?.(refold, ending.signal, output).catch((error: unknown) =>
      logger.error({ err: error }, 'what runs beside the application has failed'),
    );
    await signaled;
    await work;
  }
  await refold.stop();
  process.exit(0);
}

// In milliseconds. If npm runs the program, Ctrl-C in a terminal arrives twice: from the terminal, and from npm a moment later.
const sameSignal = 500;

/** Resolves at the first signal to stop; a later one ends the process at once. */
function signal({ stopping }: Output): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const onSignal = (name: NodeJS.Signals) => {
      if (first !== undefined && performance.now() - first > sameSignal) process.exit(130);
      if (first !== undefined) return;
      first = performance.now();
      stopping(name);
      resolve();
    };
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal);
  });
}
