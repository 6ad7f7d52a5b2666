import type { Logger } from 'pino';
import type { Database } from '../../store/postgres/database.ts';
import { readViewsBehind, type ViewBehind } from '../../store/tables/views-behind.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { pointViews } from './version-tables.ts';

const lookMilliseconds = 5000;

// Who waits for the exclusive lock of a view keeps all later readers waiting. So nobody waits behind a long reader.
const longReaderSeconds = 2;

/**
 * Lets the stable views follow the registry. A step of a version's life moves its view along, unless another session reads the view at that
 * moment, or views of users depend on columns that it loses: then the step is done, and the view follows here.
 */
export function createViewFollower({
  db,
  readSchema,
  logger,
}: {
  readonly db: Database;
  readonly readSchema: string;
  readonly logger: Logger;
}): PeriodicTask {
  let warned = new Set<string>();

  async function follow(signal: AbortSignal): Promise<void> {
    const texts = new Set<string>();
    for (const behind of await readViewsBehind(db, readSchema)) {
      if (signal.aborted) return;
      const { name, reader } = behind;
      const isFree = (reader?.seconds ?? 0) < longReaderSeconds;
      if (isFree && (await db.transaction((tx) => pointViews(tx, readSchema, [name])))) {
        logger.info({ projection: name }, `The view ${readSchema}.${name} shows the version that answers.`);
        continue;
      }
      // Without the time, which differs each time.
      const text = viewBehindText(readSchema, { ...behind, reader: reader && { ...reader, seconds: null } });
      if (!warned.has(text)) logger.warn({ projection: name }, text);
      texts.add(text);
    }
    warned = texts;
  }

  return startPeriodicTask(lookMilliseconds, follow, (error) =>
    logger.warn({ err: error }, `could not compare views with the registry; trying again: ${String(error)}`),
  );
}

/** Says what a view shows, and who keeps it from following. */
export function viewBehindText(readSchema: string, { name, shows, answering, reader, dependents }: ViewBehind): string {
  const answers = answering === null ? 'although no version answers any more' : `although ${name}@${answering} answers`;
  const since = reader?.since ? `, in a transaction that began at ${reader.since}` : '';
  const session =
    reader?.pid == null ? 'a prepared transaction' : `session ${reader.pid} of '${reader.applicationName}'`;
  const why = reader ? `: ${session} reads it${since}` : '';
  const depend =
    dependents.length === 0
      ? ''
      : ` ${dependents.join(', ')} ${dependents.length === 1 ? 'selects' : 'select'} from it: if it has to lose columns, drop ${dependents.length === 1 ? 'that view' : 'those views'} first.`;
  return `The view ${readSchema}.${name} still shows ${name}@${shows}, ${answers}${why}. It follows within ${lookMilliseconds / 1000} seconds when nobody reads it.${depend} GraphQL does not use the view.`;
}
