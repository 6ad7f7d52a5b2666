import type { Database } from '../postgres/database.ts';
import { logOf, onlyRow, type Queryable } from '../statements/statement.ts';
import { refuseServer } from './server-facts.ts';

/**
 * Refuses a database as a read store that is a log, of this application, whose store is called `default`, or of another one; and one that is another
 * read store as well.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`
 */
export async function checkStore(db: Database): Promise<void> {
  const [store, log] = await Promise.all([readIdentity(db), readIdentity(logOf(db))]);
  refuseServer(db.url, problemOf(store, log));
  for (const other of db.elsewhere?.others() ?? []) {
    // What is wrong with the other one, its own check says.
    const found = await readIdentity(other).catch(() => undefined);
    if (found && isSame(store, found)) refuseServer(db.url, sharedProblem);
  }
}

/** As {@link checkStore}, before a database is migrated. One without Refold's tables can become a read store. */
export async function checkUnmigratedStore(db: Database): Promise<void> {
  const rows = await db.query<{ hasTables: boolean }>({
    text: `select to_regclass('refold.events') is not null as "hasTables"`,
  });
  if (onlyRow(rows).hasTables) await checkStore(db);
}

interface Identity {
  readonly database: string;
  readonly serverStart: bigint;
  readonly holdsEvents: boolean;
}

async function readIdentity(db: Queryable): Promise<Identity> {
  const rows = await db.query<Identity>({
    text: `
      select
        current_database() as database,
        refold.server_start() as "serverStart",
        exists (select from refold.events) as "holdsEvents"`,
  });
  return onlyRow(rows);
}

const sharedProblem =
  "It is the database of another read store, too. Give each read store a database of its own, or leave one out of 'readStores'.";

/** Two servers do not start in the same microsecond. */
function isSame(one: Identity, other: Identity): boolean {
  return one.serverStart === other.serverStart && one.database === other.database;
}

function problemOf(store: Identity, log: Identity): string | undefined {
  if (isSame(store, log))
    return `It is the database of the log, which is the store 'default'. Give the read store another database, or leave it out of 'readStores'.`;
  if (store.holdsEvents)
    return 'It holds events, so it is the database of a log. A read store holds none: give it an empty database.';
  return undefined;
}
