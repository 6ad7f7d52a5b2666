import { RefoldError } from '../../errors.ts';
import type { Database } from '../postgres/database.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { type ColumnsOf, onlyRow, type Queryable, refoldTables, run } from '../statements/statement.ts';
import { requireMigrated } from './migrate.ts';
import { privilegeProblem } from './privileges.ts';
import { isSchemaMissing } from './running-processes.ts';
import { refuseServer, requireSuitableServer } from './server-facts.ts';

/** The properties of a migrated database that a correct horizon requires. */
export interface LogFacts {
  /** The number of positions that a session preallocates; null if the sequence is missing. */
  readonly sequenceCache: number | null;
  /** A trigger of Refold's tables that is missing or disabled, such as `check_insert`. Null if there is none. */
  readonly disabled: string | null;
  readonly seesLocks: boolean;
  /** Where the sequence of positions stands, and the last event of the log. */
  readonly drawn: bigint;
  readonly lastEvent: bigint;
  /** Another sequence that stands below what was drawn from it, such as `dead_letters_id_seq`. Null if there is none. */
  readonly behind: string | null;
  /** What was drawn from it at least. */
  readonly used: bigint | null;
}

/**
 * Refuses a database on which the event log would not be safe, or whose role lacks privileges, before anything runs on it.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`, `OPTION_DIFFERS`, `DATABASE_NOT_MIGRATED` or `DATABASE_UNAVAILABLE` that says what to do.
 */
export async function checkServer(db: Database, readSchema: string): Promise<void> {
  for (const { check } of serverChecks(readSchema)) await check(db);
}

/** One of the checks of a start. */
export interface ServerCheck {
  readonly subject: 'server' | 'options' | 'privileges' | 'migrations' | 'log';
  /** What is true if the check passes. */
  readonly passed: string;
  /** @throws RefoldError that says what to do */
  check(db: Database): Promise<void>;
}

/** The checks of {@link checkServer}, in their order. Each may rely on the ones before it. */
export function serverChecks(readSchema: string): readonly ServerCheck[] {
  return [
    {
      subject: 'server',
      passed: 'The server takes writes, has a suitable version, and its settings keep the log safe.',
      check: requireSuitableServer,
    },
    {
      subject: 'options',
      passed: 'The read tables are in the schema that the options name.',
      check: (db) => requireReadSchema(db, readSchema),
    },
    // Before the migrations: without privileges on the schema, they cannot be read. Newer tables need no privileges for this code.
    {
      subject: 'privileges',
      passed: 'The role has every privilege that a running application needs.',
      check: async (db) => refuseServer(db.url, await privilegeProblem(db, readSchema)),
    },
    {
      subject: 'migrations',
      passed: 'The database has exactly the migrations of this release.',
      check: requireMigrated,
    },
    {
      subject: 'log',
      passed: 'Each append is tagged, this role sees the tags of others, and new events come after all others.',
      check: async (db) => refuseServer(db.url, await readLogProblem(db)),
    },
  ];
}

/**
 * Refuses a read schema other than the one of the tables that the registry knows: nothing would be found there, and what a process claims would stop.
 *
 * @throws RefoldError `OPTION_DIFFERS`
 */
export async function requireReadSchema(db: Queryable, readSchema: string): Promise<void> {
  const [other] = await readOtherSchemas(db, readSchema);
  if (!other) return;
  const { name, version, tableSchema } = other;
  throw new RefoldError(
    'OPTION_DIFFERS',
    `database.readSchema is '${readSchema}', and the read tables, such as that of ${name}@${version}, are in the schema '${tableSchema}'. Set database.readSchema to '${tableSchema}' in all processes. The page on operating says how to rename the schema.`,
    { option: 'database.readSchema', found: readSchema, expected: tableSchema },
  );
}

type OtherSchema = ColumnsOf<'refold.projections', 'name' | 'version' | 'table_schema'>;

/** Empty too if the registry can't be read: other checks say why. */
async function readOtherSchemas(db: Queryable, readSchema: string): Promise<readonly OtherSchema[]> {
  try {
    return await run(
      db,
      refoldTables
        .selectFrom('refold.projections')
        .select(['name', 'version', 'table_schema as tableSchema'])
        .where('state', '<>', 'retired')
        .where('table_schema', '<>', readSchema)
        .orderBy('name')
        .orderBy('version')
        .limit(1),
    );
  } catch (error) {
    if (isSchemaMissing(error) || sqlStateOf(error) === '42501') return [];
    throw error;
  }
}

/** A {@link workProblem}: what is committed now waits, and may never be answered. */
export const standbyAway = 'commits wait for a synchronous standby that is away';

/** Why a server that responds can't be worked with; null if it can. Not what its role may do, see {@link privilegeProblem}. */
export async function workProblem(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ problem: string | null }>({
    name: 'work problem',
    text: `
      select case
        when pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' then 'the database takes no writes'
        when not (select datallowconn from pg_database where datname = current_database())
          then 'the database accepts no new connections (allow_connections is false)'
        when current_setting('synchronous_standby_names') = '' or current_setting('synchronous_commit') in ('off', 'local')
          then null
        when not exists (select from pg_stat_replication)
          or exists (
            select from pg_stat_activity
            where usename = current_user
              and wait_event = 'SyncRep'
              and query_start < clock_timestamp() - interval '2 seconds'
          )
          then '${standbyAway}'
      end as problem`,
  });
  return row?.problem ?? null;
}

/** Why readers of this log could miss events. */
export function logProblem(facts: LogFacts): string | undefined {
  const { sequenceCache, disabled, seesLocks, drawn, lastEvent, behind, used } = facts;
  if (sequenceCache !== 1) {
    return (
      `the sequence of refold.events has a cache of ${sequenceCache ?? 'nothing, because it is missing'}; expected 1. ` +
      'Run `alter sequence refold.events_position_seq cache 1`.'
    );
  }
  if (disabled !== null) {
    const [table, without] = triggers[disabled] ?? [];
    return `the trigger '${disabled}' of refold.${table} is missing or disabled, so ${without}. Run \`alter table refold.${table} enable trigger ${disabled}\`, or create it again as the migrations do.`;
  }
  if (!seesLocks)
    return 'this user may not read pg_locks. Run `grant select on pg_locks to` the user that Refold connects as.';
  if (drawn < lastEvent)
    return `the sequence of refold.events stands at ${drawn}, and the log has events up to ${lastEvent}: it was not copied with them, as by logical replication. New events would get positions below existing ones. Run \`select setval('refold.events_position_seq', ${lastEvent})\`.`;
  if (behind !== null)
    return `the sequence refold.${behind} was not copied with its table, as by logical replication: it would give numbers that are in use. Run \`select setval('refold.${behind}', ${used})\`.`;
  if (drawn > mostPositions)
    return `the sequence of refold.events stands at ${drawn}. Positions end at 2^47, 140737488355328. Run \`select setval('refold.events_position_seq', ${lastEvent})\` if something has moved it.`;
  return undefined;
}

// Positions are part of lock keys of 48 bits. A million short of their end, so that this is said before an append fails.
const mostPositions = 2n ** 47n - 1_000_000n;

/** The triggers without which something fails in silence: their tables, and what fails. */
const triggers: Readonly<Record<string, readonly [table: string, without: string]>> = {
  tag_writer: ['events', 'readers would miss events'],
  check_insert: ['events', 'an INSERT could write a unique value twice'],
  begin_rule: ['projections', 'unique values of a new version would not be checked'],
  inherit_rule: ['inline_versions', 'unique values would not be checked after a version is retired'],
  note_inline_status: ['inline_versions', 'unique values would not be checked'],
  begin_changes: ['projections', 'subscribers would miss changes'],
  raise_floors: ['changes', 'subscribers would miss changes'],
  raise_all_floors: ['changes', 'subscribers would miss changes'],
};

/** {@link logProblem} of a database. */
export async function readLogProblem(db: Queryable): Promise<string | undefined> {
  return logProblem(await readLogFacts(db));
}

/** The same, without what concerns other tables than the log. */
export async function readAppendProblem(db: Queryable): Promise<string | undefined> {
  const facts = await readLogFacts(db);
  return logProblem(facts.behind === 'inline_lives' ? facts : { ...facts, behind: null });
}

async function readLogFacts(target: Queryable): Promise<LogFacts> {
  const facts = await target.query<LogFacts>({
    name: 'log facts',
    // The sequence is read last: it never stands below an event that the snapshot has.
    text: `
      select
        (
          select seqcache::int
          from pg_sequence
          where seqrelid = to_regclass('refold.events_position_seq')
        ) as "sequenceCache",
        (
          select name
          from unnest($1::text[], $2::text[]) as expected (name, of_table)
          where not exists (
            select from pg_trigger
            where tgrelid = to_regclass('refold.' || of_table) and tgname = name and tgenabled in ('O', 'A')
          )
          limit 1
        ) as disabled,
        has_table_privilege('pg_locks', 'select') and has_function_privilege('pg_lock_status()', 'execute') as "seesLocks",
        (select coalesce(max(position), 0) from refold.events) as "lastEvent",
        coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as drawn,
        behind.name as behind,
        behind.used
      from (values (1)) as one
      left join lateral (
        select name, used
        from (values
          ('inline_lives', (select count(*) from refold.inline_versions where status = 'live' or rule = 'in force')),
          ('dead_letters_id_seq', (select max(id) from refold.dead_letters)),
          ('reactor_operations_id_seq', (select max(id) from refold.reactor_operations)),
          ('table_snapshots_id_seq', (select max(id) from refold.table_snapshots)),
          ('transitions_id_seq', (select max(id) from refold.transitions))
        ) as sequences (name, used)
        -- Of a sequence that this role may not read, the value seems to be missing.
        where has_sequence_privilege('refold.' || name, 'usage, select')
          and used > coalesce(pg_sequence_last_value(('refold.' || name)::regclass), 0)
        order by name <> 'inline_lives'
        limit 1
      ) as behind on true`,
    values: [Object.keys(triggers), Object.values(triggers).map(([table]) => table)],
  });
  return onlyRow(facts);
}
