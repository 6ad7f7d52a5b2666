import type { Logger } from 'pino';
import { addCanaryFigures, type CanaryFigures } from '../../store/registry/canaries.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** One operation during a canary. */
export interface CanaryOperation {
  readonly name: string;
  readonly version: number;
  /** Whether the canary answered it. */
  readonly byCanary: boolean;
  readonly failed: boolean;
}

/** Counts canary metrics in memory, and adds them to the database every few seconds. */
export interface CanaryRecorder {
  count(operation: CanaryOperation): void;
  /** Writes the counts so far. @throws RefoldError if the database is unreachable; those counts are lost */
  flush(): Promise<void>;
  /** Stops, and writes the remaining counts. */
  stop(): Promise<void>;
}

// A crash loses the counts of this time. Without counts, nothing is sent.
const flushMilliseconds = 10_000;

/** @param dbOf the database of a version */
export function createCanaryRecorder(
  dbOf: (version: Pick<CanaryFigures, 'name' | 'version'>) => Queryable,
  logger: Logger,
): CanaryRecorder {
  const counted = new Map<string, { -readonly [Part in keyof CanaryFigures]: CanaryFigures[Part] }>();
  let writing = Promise.resolve();

  async function write(): Promise<void> {
    const sent = [...counted.values()];
    counted.clear();
    for (const figures of sent) await addCanaryFigures(dbOf(figures), figures);
  }

  /** Waits for the write in progress, so that a reader then finds all earlier counts. */
  function flush(): Promise<void> {
    const next = writing.catch(() => {}).then(write);
    writing = next;
    return next;
  }

  const warn = (error: unknown) => logger.warn({ err: error }, `canary metrics not saved. ${reasonOf(error)}`);
  const task = startPeriodicTask(flushMilliseconds, flush, warn);

  return {
    count({ name, version, byCanary, failed }) {
      const id = `${name}@${version}`;
      const figures = counted.get(id) ?? {
        name,
        version,
        operations: 0,
        errors: 0,
        otherOperations: 0,
        otherErrors: 0,
      };
      counted.set(id, figures);
      figures[byCanary ? 'operations' : 'otherOperations']++;
      if (failed) figures[byCanary ? 'errors' : 'otherErrors']++;
    },
    flush,
    async stop() {
      await task.stop();
      await flush().catch(warn);
    },
  };
}
