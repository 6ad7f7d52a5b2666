import pg from 'pg';
import { createDatabase } from '../postgres/database.ts';

/** Whether a server responds to a new connection in time. A refusal is a response, too. */
export async function responds(url: string, withinMs: number): Promise<boolean> {
  const db = createDatabase({
    url,
    maxConnections: 1,
    connectTimeoutMs: withinMs,
    answerTimeoutMs: withinMs,
    shortStatements: true,
    applicationName: 'refold-probe',
  });
  try {
    await db.query({ text: 'select' });
    return true;
  } catch (error) {
    return error instanceof Error && error.cause instanceof pg.DatabaseError;
  } finally {
    await db.close();
  }
}
