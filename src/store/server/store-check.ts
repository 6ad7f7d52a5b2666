import type { Database } from '../postgres/database.ts';
import { logOf, onlyRow, type Queryable } from '../statements/statement.ts';
import { refuseServer } from './server-facts.ts';

/**
 * Refuses a database as a read store that is a log: the log of this application, whose store is called `default`, or that of another one.
 *
 * @throws RefoldError `DATABASE_UNSUITABLE`
 */
export async function checkStore(db: Database): Promise<void> {
  const [store, log] = await Promise.all([readIdentity(db), readIdentity(logOf(db))]);
  refuseServer(db.url, problemOf(store, log));
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

/** Two servers do not start in the same microsecond. */
function problemOf(store: Identity, log: Identity): string | undefined {
  if (store.serverStart === log.serverStart && store.database === log.database)
    return `It is the database of the log, which is the store 'default'. Give the read store another database, or leave it out of 'readStores'.`;
  if (store.holdsEvents)
    return 'It holds events, so it is the database of a log. A read store holds none: give it an empty database.';
  return undefined;
}
