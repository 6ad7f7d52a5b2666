import { RefoldError } from '../../errors.ts';
import { databaseAddress } from '../postgres/database-errors.ts';
import { settingsOfStatements } from '../postgres/session-settings.ts';
import { onlyRow, type Queryable } from '../statements/statement.ts';

/** What a server reports about itself and about the session's database. */
export interface ServerFacts {
  /** The setting `server_version`, such as `18.4`. */
  readonly version: string;
  /** The setting `server_version_num`, such as `180004`. */
  readonly versionNumber: number;
  readonly isStandby: boolean;
  /** The setting `server_encoding`, such as `UTF8`. */
  readonly encoding: string;
  /** Whether transactions are read-only by default. */
  readonly isReadOnly: boolean;
  /** The values of `settingsOfStatements` for a statement outside of a transaction. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whether writes of the session fire no triggers, as in replication. */
  readonly skipsTriggers: boolean;
}

/** @throws RefoldError `DATABASE_UNSUITABLE` if Refold cannot run on this server, in this database or as this role. */
export async function requireSuitableServer(db: Queryable & { readonly url: string }): Promise<void> {
  // First: the statements of all other checks use the names of the catalog.
  refuseServer(db.url, searchPathProblem(await readShadowing(db)));
  refuseServer(db.url, serverProblem(await readServerFacts(db)));
}

export function refuseServer(url: string, problem: string | undefined): void {
  if (problem === undefined) return;
  const address = databaseAddress(url);
  throw new RefoldError('DATABASE_UNSUITABLE', `PostgreSQL at ${address}: ${problem}`, { address });
}

/** Why Refold cannot run on this server; undefined if it can. */
export function serverProblem(facts: ServerFacts): string | undefined {
  const { version, versionNumber, encoding, settings } = facts;
  if (versionNumber < 140_000) return `PostgreSQL ${version} found; Refold needs 14 or newer.`;
  if (facts.isStandby)
    return 'a standby was found; the event log is written and read on the primary. Connect to the primary.';
  if (encoding !== 'UTF8')
    return `the encoding of the database is ${encoding}, which can't hold every text; Refold needs UTF8. Create another: \`create database refold encoding 'UTF8' template template0\`.`;
  if (facts.isReadOnly)
    return 'the database is read-only: default_transaction_read_only is on. Some services set it when their storage is full; otherwise set it to off for the database and the role.';
  // Refold sets them in each session. Behind a pooler in transaction mode it cannot.
  const wrong = Object.entries(settingsOfStatements).find(([name, value]) => settings[name] !== value);
  if (wrong) {
    const [name, value] = wrong;
    return `statements run with ${name} = '${settings[name]}'; Refold needs '${value}', and can't set it behind a pooler in transaction mode. Run \`alter role … set ${name} = '${value}'\`, and reconnect the pooler.`;
  }
  if (facts.skipsTriggers)
    return 'session_replication_role is replica, under which the triggers of refold.events do not fire. Set it to origin for the role and the database.';
  return undefined;
}

async function readServerFacts(target: Queryable): Promise<ServerFacts> {
  const facts = await target.query<ServerFacts>({
    text: `
      select
        current_setting('server_version') as version,
        current_setting('server_version_num')::int as "versionNumber",
        pg_is_in_recovery() as "isStandby",
        current_setting('server_encoding') as encoding,
        current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
        (select json_object_agg(name, current_setting(name)) from unnest($1::text[]) as name) as settings,
        current_setting('session_replication_role') = 'replica' as "skipsTriggers"`,
    values: [Object.keys(settingsOfStatements)],
  });
  return onlyRow(facts);
}

/** A name of the catalog that means something else, because `search_path` lists a schema before `pg_catalog`. */
interface Shadowing {
  readonly schema: string;
  /** Such as `table pg_locks`. */
  readonly object: string;
  /** The setting, and who has set it, as `pg_settings` says it. */
  readonly path: string;
  readonly source: string;
  readonly role: string;
  readonly database: string;
}

function searchPathProblem(found: Shadowing | undefined): string | undefined {
  if (!found) return undefined;
  const { schema, object, path, source, role, database } = found;
  const others = path.split(',').filter((name) => !/^\s*"?pg_catalog"?\s*$/.test(name));
  const [from, target] = whoSets(source, role, database);
  return (
    `search_path is '${path}', set ${from}, so the ${object} of the schema '${schema}' is used in place of PostgreSQL's own. Without pg_catalog in the list, ` +
    `PostgreSQL's own come first: run \`alter ${target} set search_path = ${others.join(',').trim() || "''"}\`${source === 'client' ? ', and take the setting out of the connection' : ''}.`
  );
}

/** Where the setting comes from, and what to alter. */
function whoSets(source: string, role: string, database: string): readonly [from: string, target: string] {
  switch (source) {
    case 'user':
      return [`for the role ${role}`, `role ${role}`];
    case 'database':
      return [`for the database ${database}`, `database ${database}`];
    case 'database user':
      return [`for the role ${role} in the database ${database}`, `role ${role} in database ${database}`];
    case 'client':
      return [
        'by the connection (the options of its URL, PGOPTIONS, or a pooler)',
        `role ${role} in database ${database}`,
      ];
    default:
      return [`for the server (${source})`, `database ${database}`];
  }
}

/** The first one. Types, functions and operators count, too: `now()` or `=` of another schema changes every statement. */
async function readShadowing(db: Queryable): Promise<Shadowing | undefined> {
  const [found] = await db.query<Shadowing>({
    text: `
      with path as (
        select schema, place
        from unnest(pg_catalog.current_schemas(true)) with ordinality as listed (schema, place)
      ), earlier as (
        select pg_namespace.oid, schema, place
        from path
        join pg_catalog.pg_namespace on nspname = schema
        where place < (select place from path where schema = 'pg_catalog') and schema not like 'pg\\_temp%'
      ), shadowing as (
        select 'table ' || relname as object, relnamespace as namespace
        from pg_catalog.pg_class
        where relname in (select relname from pg_catalog.pg_class where relnamespace = 'pg_catalog'::pg_catalog.regnamespace)
        union all
        select 'type ' || typname, typnamespace
        from pg_catalog.pg_type
        where typcategory <> 'A' and typname in (select typname from pg_catalog.pg_type where typnamespace = 'pg_catalog'::pg_catalog.regnamespace)
        union all
        select 'function ' || proname, pronamespace
        from pg_catalog.pg_proc
        where (proname, proargtypes) in (
          select proname, proargtypes from pg_catalog.pg_proc where pronamespace = 'pg_catalog'::pg_catalog.regnamespace
        )
        union all
        select 'operator ' || oprname, oprnamespace
        from pg_catalog.pg_operator
        where (oprname, oprleft, oprright) in (
          select oprname, oprleft, oprright from pg_catalog.pg_operator where oprnamespace = 'pg_catalog'::pg_catalog.regnamespace
        )
      )
      select
        schema,
        object,
        pg_catalog.current_setting('search_path') as path,
        (select source from pg_catalog.pg_settings where name = 'search_path') as source,
        pg_catalog.quote_ident(session_user) as role,
        pg_catalog.quote_ident(pg_catalog.current_database()) as database
      from earlier
      join shadowing on namespace = earlier.oid
      order by place, object
      limit 1`,
  });
  return found;
}

/** The number of sessions that the server allows for all roles except superusers. */
export async function readAdmittedConnections(db: Queryable): Promise<number> {
  const [row] = await db.query<{ admitted: number }>({
    text: `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as admitted`,
  });
  return row?.admitted ?? 0;
}
