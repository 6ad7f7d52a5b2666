import type pg from 'pg';
import type { Database } from './database.ts';
import { isConnectionLoss, translateDatabaseError } from './database-errors.ts';

/**
 * Runs a query as `copy (…) to stdout` and hands over each row as a line of tab-separated texts with its newline. The
 * line is only valid during the call. Half the work of ordinary rows: no message and no value is parsed per column.
 *
 * The query carries its values as literals, since COPY takes none.
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

/** A field of such a line, with its escapes undone. */
export function copiedText(field: string): string {
  return field.includes('\\') ? field.replace(/\\(.)/g, (_, char: string) => escapes[char] ?? char) : field;
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

interface CopyConnection {
  query(text: string): void;
}

/** What the driver calls while it runs a query of somebody's own making. */
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
  return handlers as unknown as pg.Submittable; // its type knows no more than `submit` of what the driver calls
}
