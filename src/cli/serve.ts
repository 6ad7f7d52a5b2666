import { once } from 'node:events';
import { type Logger, pino } from 'pino';
import type { Config } from '../define-config.ts';
import { createRefold, type Refold, type RefoldOptions } from '../refold.ts';

export interface ServeOptions extends Omit<RefoldOptions, 'logger'> {
  /** Said once everything runs. */
  announce(refold: Refold): string;
  /** Runs beside the application until the signal aborts. */
  readonly beside?: (refold: Refold, signal: AbortSignal, logger: Logger) => Promise<void>;
}

// Longer than the gateway and a batch take; after that something hangs, and whoever sent the signal should not wait on.
const patience = 15_000;

/** Runs an application until SIGINT or SIGTERM, then stops it in order. A second signal ends it at once. */
export async function serve(config: Config, { announce, beside, ...options }: ServeOptions): Promise<void> {
  const logger = createLogger();
  const refold = await createRefold(config, { ...options, logger });
  const ending = new AbortController();
  process.stdout.write(`${announce(refold)}\n`);
  const work = beside?.(refold, ending.signal, logger).catch((error: unknown) =>
    logger.error({ err: error }, 'what runs beside the application has failed'),
  );

  const [signal] = await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  process.stdout.write(`\nrefold: ${signal}, stopping. Once more ends it at once.\n`);
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => process.exit(130));
  const overdue = setTimeout(() => {
    logger.error(`refold: not stopped within ${patience / 1000} s`);
    process.exit(1);
  }, patience);
  ending.abort();
  await work;
  await refold.stop();
  clearTimeout(overdue);
  process.exit(0);
}

function createLogger(): Logger {
  const level = process.env.LOG_LEVEL ?? 'info';
  if (!process.stdout.isTTY) return pino({ level });
  return pino({
    level,
    transport: {
      target: 'pino-pretty',
      options: { ignore: 'pid,hostname,projection,checkpoint,epoch,state', translateTime: 'HH:MM:ss' },
    },
  });
}
