import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { errorOf } from '../../thrown.ts';

/** Logs an outage of the database: one line at its start, one with a count each minute, one at its end. */
export interface Outages {
  /**
   * The given logger, except that it counts warnings and errors whose `err` is an outage, or an ownership lost in one, instead of logging them.
   * Its children log everything.
   */
  readonly logger: Logger;
  /** Reports that the database has just responded. */
  answered(): void;
}

const minute = 60_000;

// A failure shortly before a success still belongs to the same outage.
const settledMs = 5000;

interface Outage {
  readonly since: number;
  failedAt: number;
  failures: number;
  countedAt: number;
  /** The number of failures already logged. */
  counted: number;
}

export interface OutagesOptions {
  /** What is not available, as a subject. @default 'the database' */
  readonly what?: string;
  readonly now?: () => number;
}

export function createOutages(
  logger: Logger,
  { what = 'the database', now = () => performance.now() }: OutagesOptions = {},
): Outages {
  let outage: Outage | undefined;

  function failed(err: unknown): void {
    const at = now();
    if (!outage) {
      outage = { since: at, failedAt: at, failures: 1, countedAt: at, counted: 1 };
      logger.warn({ err }, `${what} is not available: operations that need it are retried. ${String(err)}`);
      return;
    }
    outage.failedAt = at;
    outage.failures++;
    if (at - outage.countedAt < minute) return;
    const failures = outage.failures - outage.counted;
    Object.assign(outage, { countedAt: at, counted: outage.failures });
    logger.warn({ failures }, `${what} is still not available: ${failures} attempts failed since the last line`);
  }

  const quiet =
    (level: 'warn' | 'error') =>
    (given: object, ...rest: unknown[]): void => {
      // Serializers of loggers fail at what an application may have thrown.
      const line =
        typeof given === 'object' && given !== null && 'err' in given ? { ...given, err: errorOf(given.err) } : given;
      if (isOutageLine(line)) failed(line.err);
      else Reflect.apply(logger[level], logger, [line, ...rest]);
    };

  return {
    logger: Object.assign(Object.create(logger), {
      warn: quiet('warn'),
      error: quiet('error'),
      child: logger.child.bind(logger),
    }),
    answered() {
      const at = now();
      if (!outage || at - outage.failedAt < settledMs) return;
      const { since, failures } = outage;
      outage = undefined;
      const seconds = Math.round((at - since) / 1000);
      logger.warn({ failures }, `${what} is available again after ${seconds} s; ${failures} attempts failed`);
    },
  };
}

function isOutageLine(given: unknown): given is { readonly err: unknown } {
  if (typeof given !== 'object' || given === null || !('err' in given)) return false;
  const { err } = given;
  return isOutage(err) || (err instanceof RefoldError && err.code === 'PROCESSOR_FENCED' && isOutage(err.cause));
}
