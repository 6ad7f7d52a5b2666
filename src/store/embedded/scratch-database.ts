import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, type Database } from '../postgres/database.ts';
import { migrate } from '../server/migrate.ts';
import { startEmbeddedPostgres } from './embedded-postgres.ts';

/**
 * Runs `work` in a new database with Refold's tables and drops it afterwards. Uses the server of the URL or of DATABASE_URL, else an
 * embedded one.
 */
export async function withScratchDatabase<T>(
  url: string | undefined = process.env.DATABASE_URL,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  if (url !== undefined) return inServer(url, work);
  const dataDir = join(tmpdir(), `refold-scratch-${randomBytes(6).toString('hex')}`);
  try {
    const server = await startEmbeddedPostgres({ dataDir });
    try {
      return await inServer(server.url, work);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function inServer<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const name = `refold_scratch_${randomBytes(6).toString('hex')}`;
  const admin = createDatabase({ url, maxConnections: 1 });
  try {
    await admin.query({ text: `create database ${name}` });
    try {
      return await inDatabase(urlOf(url, name), work);
    } finally {
      await admin.query({ text: `drop database ${name} with (force)` });
    }
  } finally {
    await admin.close();
  }
}

async function inDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  await migrate(url);
  const db = createDatabase({ url });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

// As text: `URL` cannot parse a URL with several hosts.
function urlOf(url: string, database: string): string {
  return url.replace(/^([a-z]+:\/\/[^/?]*)(\/[^?]*)?/, `$1/${database}`);
}
