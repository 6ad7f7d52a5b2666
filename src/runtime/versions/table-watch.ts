import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import { announceLeave, readInlineVersions } from '../../store/registry/inline-versions.ts';
import { readTableProblems, type TableProblem } from '../../store/tables/table-problems.ts';
import { reasonOf } from '../../thrown.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { createSharedRun } from '../scheduling/shared-run.ts';

/** Detects read tables that are missing or were altered by hand. */
export interface TableWatch extends PeriodicTask {
  /**
   * Returns what keeps a version's table from being folded into, as of the last check; null if nothing does. `projection` is the version with
   * the table that holds its rows.
   */
  damageOf(projection: Projection): RefoldError | null;
  /** All of it, by table. */
  damages(): ReadonlyMap<string, RefoldError>;
  /** Checks now, and returns the result of {@link damageOf}. */
  look(projection: Projection): Promise<RefoldError | null>;
}

// Tables are altered by hand, and seldom. If a statement fails because of it, the check runs at once.
const lookMilliseconds = 60_000;

export function createTableWatch(options: {
  readonly db: Database;
  readonly notifications: Notifications;
  readonly projections: readonly Projection[];
  readonly logger: Logger;
}): TableWatch {
  const { db, projections, logger } = options;
  const logged = new Set<string>();
  let damaged = new Map<string, RefoldError>();

  async function look(): Promise<void> {
    const problems = await leaveDamaged(db, projections);
    const before = damaged;
    damaged = new Map(
      problems.flatMap((problem) => {
        const error = damageError(problem);
        return error ? [[problem.tableName, error]] : [];
      }),
    );
    for (const problem of problems) warnOfIndexes(problem);
    // A gateway meets the damage of a table that others maintain.
    if ([...damaged.keys()].some((table) => !before.has(table))) await db.query({ text: `notify ${channel}` });
  }

  function warnOfIndexes(problem: TableProblem): void {
    const text = missingIndexesText(problem);
    if (problem.damage !== null || logged.has(text)) return;
    logged.add(text);
    logger.warn({ projection: `${problem.name}@${problem.version}` }, text);
  }

  // A process that claims many units asks for each of them.
  const looks = createSharedRun(look);
  const task = startPeriodicTask(lookMilliseconds, looks.run, (error) =>
    logger.warn({ err: error }, `could not check the read tables; trying again. ${reasonOf(error)}`),
  );
  const unsubscribe = options.notifications.on(channel, (payload) => payload !== undefined && task.soon());
  const damageOf = ({ tableName }: Projection) => damaged.get(tableName) ?? null;
  return {
    ...task,
    async stop() {
      unsubscribe();
      await task.stop();
      await looks.idle();
    },
    damageOf,
    damages: () => damaged,
    async look(projection) {
      await looks.run();
      return damageOf(projection);
    },
  };
}

const channel = 'refold_tables';

/**
 * Reads what is wrong with the tables of these versions. Appends that fold into a damaged table would fail, so they leave its version, and its
 * processor reports the damage.
 */
export async function leaveDamaged(db: Database, projections: readonly Projection[]): Promise<TableProblem[]> {
  const problems = (await readTableProblems(db)).filter(({ name, version }) =>
    projections.some((projection) => projection.name === name && projection.version === version),
  );
  if (problems.every(({ damage }) => damage === null)) return problems;
  for (const { name, version, status } of await readInlineVersions(db)) {
    const damage = problems.find((problem) => problem.name === name && problem.version === version)?.damage ?? null;
    if (status === 'live' && damage !== null) await announceLeave(db, name, version);
  }
  return problems;
}

/** Returns the message about a damaged table; null if it is not damaged. */
export function damageError({ name, version, tableName, damage }: TableProblem): RefoldError<'TABLE_ALTERED'> | null {
  if (damage === null) return null;
  const id = `${name}@${version}`;
  return new RefoldError('TABLE_ALTERED', `${id}: ${damage}. 'refold rebuild ${id}' rebuilds it.`, {
    name,
    version,
    table: tableName,
  });
}

/** Returns the message about missing and limiting indexes. */
export function missingIndexesText({
  name,
  version,
  missingIndexes,
  limitingIndexes = [],
}: Pick<TableProblem, 'name' | 'version' | 'missingIndexes'> & Partial<TableProblem>): string {
  const id = `${name}@${version}`;
  const columns = missingIndexes.map((column) => `'${column}'`).join(', ');
  const problems = [
    ...(columns === '' ? [] : [`its table lacks the index of ${columns}, so reads that need it scan the table.`]),
    ...limitingIndexes.map(
      (index) => `its index ${index} of an earlier release refuses texts of more than about 2,700 bytes.`,
    ),
  ];
  return `${id}: ${problems.join(' And ')} 'refold rebuild ${id}' rebuilds it.`;
}
