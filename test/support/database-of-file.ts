import { afterAll } from 'vitest';
import type { EventFamily } from '../../src/index.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

export interface DatabaseOfFile {
  readonly database: TestDatabase;
  readonly db: Database;
  /** The log of the declared families. */
  readonly log: EventLog;
}

/**
 * Creates a database for all tests of the file, and drops it after them. Call it at the top of the file: what the file itself ends in `afterAll`
 * then ends before.
 */
export async function databaseOfFile(...families: readonly EventFamily[]): Promise<DatabaseOfFile> {
  const database = await createTestDatabase();
  const db = createDatabase({ url: database.url });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });
  return { database, db, log: createEventLog(db, families) };
}
