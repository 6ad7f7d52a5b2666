import { RefoldError } from '../../errors.ts';
import { databaseAddress } from '../postgres/database-errors.ts';
import type { Queryable } from '../postgres/statement.ts';

/** What a server tells about itself, and about the database that a session is in. */
export interface ServerFacts {
  /** As `server_version` says, such as `18.4`. */
  readonly version: string;
  /** As `server_version_num` says, such as `180004`. */
  readonly versionNumber: number;
  readonly isStandby: boolean;
  /** As `server_encoding` says, such as `UTF8`. */
  readonly encoding: string;
  /** Whether transactions are read-only unless they say otherwise. */
  readonly isReadOnly: boolean;
  /** What a statement outside of a transaction runs under, such as `read committed`. */
  readonly isolation: string;
  /** Whether the session's writes fire no triggers, as those of a replication do. */
  readonly skipsTriggers: boolean;
}

/** @throws RefoldError `DATABASE_UNSUITABLE` where Refold can't run on this server, in this database or as this role. */
export async function requireSuitableServer(db: Queryable & { readonly url: string }): Promise<void> {
  refuse(db.url, serverProblem(await readServerFacts(db)));
}

export function refuse(url: string, problem: string | undefined): void {
  if (problem === undefined) return;
  const address = databaseAddress(url);
  throw new RefoldError('DATABASE_UNSUITABLE', `PostgreSQL at ${address}: ${problem}`, { address });
}

/** Why Refold can't run on this server. */
export function serverProblem(facts: ServerFacts): string | undefined {
  const { version, versionNumber, encoding, isolation } = facts;
  if (versionNumber < 140_000) return `PostgreSQL ${version} found; Refold needs 14 or newer.`;
  if (facts.isStandby)
    return 'a standby was found; the event log is written and read on the primary. Connect to the primary.';
  if (encoding !== 'UTF8')
    return `the encoding of the database is ${encoding}, which can't hold every text; Refold needs UTF8. Create another: \`create database refold encoding 'UTF8' template template0\`.`;
  if (facts.isReadOnly)
    return 'the database is read-only: default_transaction_read_only is on. Some services set it when their storage is full; otherwise set it to off for the database and the role.';
  // Refold sets it in each session. Behind a pooler in transaction mode it can't.
  if (isolation !== 'read committed')
    return `statements run under the isolation level ${isolation}; Refold needs read committed, and can't set it behind a pooler in transaction mode. Run \`alter role … set default_transaction_isolation = 'read committed'\`, and reconnect the pooler.`;
  if (facts.skipsTriggers)
    return 'session_replication_role is replica, under which the triggers of refold.events do not fire. Set it to origin for the role and the database.';
  return undefined;
}

async function readServerFacts(target: Queryable): Promise<ServerFacts> {
  const [facts] = await target.query<ServerFacts>({
    text: `
      select
        current_setting('server_version') as version,
        current_setting('server_version_num')::int as "versionNumber",
        pg_is_in_recovery() as "isStandby",
        current_setting('server_encoding') as encoding,
        current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
        current_setting('default_transaction_isolation') as isolation,
        current_setting('session_replication_role') = 'replica' as "skipsTriggers"`,
  });
  return facts as ServerFacts; // a select without from gives one row
}

/** How many sessions the server has for all roles but superusers, whoever holds them. */
export async function readAdmittedConnections(db: Queryable): Promise<number> {
  const [row] = await db.query<{ admitted: number }>({
    text: `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as admitted`,
  });
  return row?.admitted ?? 0;
}
