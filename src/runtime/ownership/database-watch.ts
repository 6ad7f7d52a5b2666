import { createStalledCommits, type StalledCommits } from '../../store/append-queue/stalled-commits.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage, isServerFault } from '../../store/postgres/database-errors.ts';
import { privilegeProblem } from '../../store/server/privileges.ts';
import { readAppendProblem, standbyAway, workProblem } from '../../store/server/server-check.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** Why appends or reads cannot reach the database at present. Empty if both can. */
export interface DatabaseProblems {
  readonly appends?: string;
  readonly reads?: string;
}

/** Tracks whether this process can reach its database, by queries of its own and by the outcome of appends. */
export interface DatabaseWatch {
  problems(): DatabaseProblems;
  /** Whether no answer comes. False while the database answers, even if it refuses. */
  isSilent(): boolean;
  readonly stalled: Pick<StalledCommits, 'run'>;
  /** Reports the outcome of an append: its error, or undefined. */
  appended(error?: unknown): void;
  stop(): Promise<void>;
}

export interface DatabaseWatchOptions {
  /** The pools for appends and reads. */
  readonly appends: Database;
  readonly reads: Database;
  /** How long a response may take, and the interval of checks while all is well. Milliseconds. */
  readonly answerTimeoutMs: number;
  /** The read schema of the application: what appends and batches need is checked too. */
  readonly readSchema?: string;
  /** Called when something begins that only an operator can end, with a sentence for the log. */
  readonly onProblem?: (sentence: string) => void;
  /** Called when both pools have responded. */
  readonly onAnswered: () => void;
}

interface Path {
  readonly db: Database;
  /** When the current or the latest check began. */
  askedAt: number;
  isAsking: boolean;
  problem: string | undefined;
  /** Whether the latest check got no answer. */
  isSilent: boolean;
}

const whileAwayMs = 500;

// How long one failed append marks appends as failing. After that, one must be let through to test the database.
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
    isSilent: false,
  });
  const appends = path(options.appends);
  const reads = path(options.reads);
  const stalled = createStalledCommits();
  let appendFailedAt = Number.NEGATIVE_INFINITY;

  async function ask(asked: Path): Promise<void> {
    asked.askedAt = now();
    asked.isAsking = true;
    try {
      const before = asked.problem;
      const problem = (await workProblem(asked.db)) ?? (asked === appends ? await appendProblem(asked.db) : null);
      // Without names: it is shown to everybody who asks for the health.
      asked.problem = problem
        ?.replace(/^the role .*/s, 'the role lacks privileges')
        .replace(/^the sequence .*/s, 'the log can not be appended to');
      asked.isSilent = false;
      if (asked === appends) stalled.waitFor(problem === standbyAway ? problem : undefined);
      if (problem && asked === appends && asked.problem !== before) options.onProblem?.(problem);
      if (problemOf(appends) === undefined && problemOf(reads) === undefined) onAnswered();
    } catch (error) {
      asked.isSilent = isOutage(error);
      asked.problem = asked.isSilent ? unavailable : 'the database refuses a query';
    } finally {
      asked.isAsking = false;
    }
  }

  async function appendProblem(db: Database): Promise<string | null> {
    if (!options.readSchema) return null;
    return (await privilegeProblem(db, options.readSchema)) ?? (await readAppendProblem(db)) ?? null;
  }

  function isLate({ isAsking, askedAt }: Path): boolean {
    return isAsking && now() - askedAt > answerTimeoutMs;
  }

  function problemOf(asked: Path): string | undefined {
    return isLate(asked) ? `no answer of the database for ${answerTimeoutMs} ms` : asked.problem;
  }

  // Checks run without being awaited: on a silent network, the connection's own timeout ends them.
  const task = startPeriodicTask(
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
    stalled,
    problems() {
      const ofAppends = problemOf(appends) ?? (now() - appendFailedAt < appendCountsMs ? unavailable : undefined);
      const ofReads = problemOf(reads);
      return {
        ...(ofAppends === undefined ? {} : { appends: ofAppends }),
        ...(ofReads === undefined ? {} : { reads: ofReads }),
      };
    },
    isSilent: () => [appends, reads].some((asked) => asked.isSilent || isLate(asked)),
    appended(error) {
      appendFailedAt = isOutage(error) || isServerFault(error) ? now() : Number.NEGATIVE_INFINITY;
    },
    stop: () => task.stop(),
  };
}
