import { RefoldError } from '../errors.ts';
import type { Database } from './database.ts';
import { databaseAddress } from './database-errors.ts';
import { requireMigrated } from './migrate.ts';
import type { Queryable } from './statement.ts';

/** What a server tells about itself. */
export interface ServerFacts {
  /** As `server_version` says, such as `18.4`. */
  readonly version: string;
  /** As `server_version_num` says, such as `180004`. */
  readonly versionNumber: number;
  readonly isStandby: boolean;
}

/** What the horizon rule needs of a migrated database. */
export interface LogFacts {
  /** Positions that a session draws in advance; null where the sequence is missing. */
  readonly sequenceCache: number | null;
  readonly hasTagTrigger: boolean;
  readonly seesLocks: boolean;
}

/**
 * Refuses a database on which the event log would not be safe, before anything runs on it.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`, `DATABASE_NOT_MIGRATED` or `DATABASE_UNREACHABLE`, each with the way out.
 */
export async function checkServer(db: Database): Promise<void> {
  const address = databaseAddress(db.url);
  refuse(address, serverProblem(await readServerFacts(db)));
  await requireMigrated(db);
  refuse(address, logProblem(await readLogFacts(db)));
}

/** Why Refold can't run on this server. */
export function serverProblem({ version, versionNumber, isStandby }: ServerFacts): string | undefined {
  if (versionNumber < 140_000) return `PostgreSQL ${version} found; Refold needs 14 or newer.`;
  if (isStandby)
    return 'a standby was found; the event log is written and read on the primary. Connect to the primary.';
  return undefined;
}

/** Why readers of this log could miss events. */
export function logProblem({ sequenceCache, hasTagTrigger, seesLocks }: LogFacts): string | undefined {
  if (sequenceCache !== 1) {
    return (
      `the sequence of refold.events has a cache of ${sequenceCache ?? 'nothing, since it is missing'}; expected 1. ` +
      'Run `alter sequence refold.events_position_seq cache 1`.'
    );
  }
  if (!hasTagTrigger) {
    return "the trigger 'tag_writer' of refold.events is missing or disabled. Run `alter table refold.events enable trigger tag_writer`, or restore it from migration 0001.";
  }
  if (!seesLocks)
    return 'this user may not read pg_locks. Run `grant select on pg_locks to` the user that Refold connects as.';
  return undefined;
}

function refuse(address: string, problem: string | undefined): void {
  if (problem !== undefined)
    throw new RefoldError('DATABASE_UNSUITABLE', `PostgreSQL at ${address}: ${problem}`, { address });
}

async function readServerFacts(target: Queryable): Promise<ServerFacts> {
  const [facts] = await target.query<ServerFacts>({
    text: `
      select
        current_setting('server_version') as version,
        current_setting('server_version_num')::int as "versionNumber",
        pg_is_in_recovery() as "isStandby"`,
  });
  return facts as ServerFacts; // a select without from gives one row
}

async function readLogFacts(target: Queryable): Promise<LogFacts> {
  const [facts] = await target.query<LogFacts>({
    text: `
      select
        (
          select seqcache::int
          from pg_sequence
          where seqrelid = to_regclass('refold.events_position_seq')
        ) as "sequenceCache",
        exists (
          select from pg_trigger
          where tgrelid = to_regclass('refold.events')
            and tgname = 'tag_writer'
            and tgenabled in ('O', 'A')
        ) as "hasTagTrigger",
        has_table_privilege('pg_locks', 'select') and has_function_privilege('pg_lock_status()', 'execute') as "seesLocks"`,
  });
  return facts as LogFacts; // a select without from gives one row
}
