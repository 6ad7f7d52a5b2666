import type pg from 'pg';
import type { Database } from './database.ts';
import { isConnectionLoss, translateDatabaseError } from './database-errors.ts';

/**
 * Runs a query as `copy (…) to stdout`. Passes each row to `onRow` as a line of tab-separated texts with its newline. The line is valid
 * only during the call. Takes half the work of ordinary rows: no message and no value is parsed per column.
 *
 * The query must contain its values as literals, because COPY accepts no parameters.
 */
export async function copyRows(db: Database, query: string, onRow: (line: Buffer) => void): Promise<void> {
  const client = await db.connect();
  try {
    await new Promise<void>((resolve, reject) => {
      client.query(copyOut(`copy (${query}) to stdout`, onRow, resolve, reject));
    });
    client.release();
  } catch (error) {
    const translated = translateDatabaseError(error, db.url);
    client.release(isConnectionLoss(error));
    throw translated;
  }
}

/** Unescapes a field of such a line. */
export function copiedText(field: string): string {
  return field.includes('\\') ? field.replace(/\\(.)/g, (_, char: string) => escapes[char] ?? char) : field;
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

interface CopyConnection {
  query(text: string): void;
}

/** The methods that the driver calls on a custom query. */
function copyOut(
  text: string,
  onRow: (line: Buffer) => void,
  resolve: () => void,
  reject: (error: unknown) => void,
): pg.Submittable {
  const handlers = {
    submit: (connection: CopyConnection) => connection.query(text),
    handleCopyData: ({ chunk }: { chunk: Buffer }) => onRow(chunk),
    handleCommandComplete: () => {},
    handleReadyForQuery: resolve,
    handleError: reject,
  };
  return handlers as unknown as pg.Submittable; // the type declares only `submit`
}
