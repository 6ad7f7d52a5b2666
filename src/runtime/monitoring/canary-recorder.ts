import type { Logger } from 'pino';
import type { Queryable } from '../../store/postgres/statement.ts';
import { addCanaryFigures, type CanaryFigures } from '../../store/registry/canaries.ts';
import { createRounds } from '../scheduling/rounds.ts';

/** One operation while a version is a canary. */
export interface CanaryOperation {
  readonly name: string;
  readonly version: number;
  /** Whether the canary answered it. */
  readonly byCanary: boolean;
  readonly failed: boolean;
}

/** Counts in memory how canaries do, and adds it to the database every few seconds. */
export interface CanaryRecorder {
  count(operation: CanaryOperation): void;
  /** Writes what is counted so far. @throws RefoldError where the database can't be reached; what is counted is lost, then */
  flush(): Promise<void>;
  /** Writes the rest. */
  stop(): Promise<void>;
}

// A crash loses what was counted since; while nothing is counted, nothing is sent.
const flushMilliseconds = 10_000;

export function createCanaryRecorder(db: Queryable, logger: Logger): CanaryRecorder {
  const counted = new Map<string, { -readonly [Part in keyof CanaryFigures]: CanaryFigures[Part] }>();
  let writing = Promise.resolve();

  async function write(): Promise<void> {
    const sent = [...counted.values()];
    counted.clear();
    for (const figures of sent) await addCanaryFigures(db, figures);
  }

  /** After what is being written: whoever reads then finds all that was counted before. */
  function flush(): Promise<void> {
    const next = writing.catch(() => {}).then(write);
    writing = next;
    return next;
  }

  const warn = (error: unknown) =>
    logger.warn({ err: error }, `how a canary does could not be written. ${String(error)}`);
  const rounds = createRounds(flushMilliseconds, flush, warn);

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
      await rounds.stop();
      await flush().catch(warn);
    },
  };
}
