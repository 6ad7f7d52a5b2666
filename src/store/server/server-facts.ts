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

/** The number of sessions that the server allows for all roles except superusers. */
export async function readAdmittedConnections(db: Queryable): Promise<number> {
  const [row] = await db.query<{ admitted: number }>({
    text: `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as admitted`,
  });
  return row?.admitted ?? 0;
}
