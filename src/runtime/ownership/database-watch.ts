import type { Database } from '../../store/postgres/database.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { takesWrites } from '../../store/server/server-check.ts';
import { createRounds } from '../scheduling/rounds.ts';

/** Why appends or reads do not get through now. Empty where both do. */
export interface DatabaseProblems {
  readonly appends?: string;
  readonly reads?: string;
}

/** Knows whether this process gets through to its database, by trying, and by what becomes of appends. */
export interface DatabaseWatch {
  problems(): DatabaseProblems;
  /** What became of an append: an outage, or nothing of the kind. */
  appended(outage?: unknown): void;
  stop(): Promise<void>;
}

export interface DatabaseWatchOptions {
  /** The connections of each. */
  readonly appends: Database;
  readonly reads: Database;
  /** How long an answer may take, and how often it is asked for while all is well. Milliseconds. */
  readonly answerTimeoutMs: number;
  /** All connections have answered just now. */
  readonly onAnswered: () => void;
}

interface Path {
  readonly db: Database;
  /** Of the question that is not answered yet, or the last one. */
  askedAt: number;
  isAsking: boolean;
  problem: string | undefined;
}

const whileAwayMs = 500;

// An append that failed tells of the next ones for so long. Then one has to be let through to find out.
const appendCountsMs = 10_000;

const unavailable = 'the database is not available';

export function createDatabaseWatch(options: DatabaseWatchOptions): DatabaseWatch {
  const { answerTimeoutMs, onAnswered } = options;
  const now = () => performance.now();
  const path = (db: Database): Path => ({
    db,
    askedAt: Number.NEGATIVE_INFINITY,
    isAsking: false,
    problem: undefined,
  });
  const appends = path(options.appends);
  const reads = path(options.reads);
  let appendFailedAt = Number.NEGATIVE_INFINITY;

  async function ask(asked: Path): Promise<void> {
    asked.askedAt = now();
    asked.isAsking = true;
    try {
      asked.problem = (await takesWrites(asked.db)) ? undefined : 'the database takes no writes';
      if (problemOf(appends) === undefined && problemOf(reads) === undefined) onAnswered();
    } catch (error) {
      asked.problem = isOutage(error) ? unavailable : 'the database refuses a query';
    } finally {
      asked.isAsking = false;
    }
  }

  function problemOf({ problem, isAsking, askedAt }: Path): string | undefined {
    if (isAsking && now() - askedAt > answerTimeoutMs) return `no answer of the database for ${answerTimeoutMs} ms`;
    return problem;
  }

  // Nobody waits for a question: where the network is silent its connection ends it.
  const rounds = createRounds(
    Math.min(whileAwayMs, answerTimeoutMs),
    async () => {
      for (const one of [appends, reads]) {
        const isDue = one.problem !== undefined || now() - one.askedAt >= answerTimeoutMs;
        if (!one.isAsking && isDue) void ask(one);
      }
    },
    () => {},
  );

  return {
    problems() {
      const ofAppends = problemOf(appends) ?? (now() - appendFailedAt < appendCountsMs ? unavailable : undefined);
      const ofReads = problemOf(reads);
      return {
        ...(ofAppends === undefined ? {} : { appends: ofAppends }),
        ...(ofReads === undefined ? {} : { reads: ofReads }),
      };
    },
    appended(outage) {
      appendFailedAt = isOutage(outage) ? now() : Number.NEGATIVE_INFINITY;
    },
    stop: () => rounds.stop(),
  };
}
