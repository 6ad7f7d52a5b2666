import type pg from 'pg';
import type { Database } from './database.ts';
import { isConnectionLoss, translateDatabaseError } from './database-errors.ts';

/**
 * Runs a query as `copy (…) to stdout`. Passes each row to `onRow` as a line of tab-separated texts with its newline. The line is valid
 * only during the call. Takes half the work of ordinary rows: no message and no value is parsed per column.
 *
 * The query must contain its values as literals, because COPY accepts no parameters.
 *
 * @param onRow returns false for the last row that it takes. Nothing else ends a COPY early, so the connection is then closed.
 * @returns whether there may be further rows
 */
export async function copyRows(db: Database, query: string, onRow: (line: Buffer) => boolean): Promise<boolean> {
  const client = await db.connect();
  try {
    const ended = await new Promise<boolean>((resolve, reject) => {
      const takeRow = (line: Buffer) => {
        if (onRow(line)) return true;
        resolve(true);
        client.connection.stream.destroy();
        return false;
      };
      client.query(copyOut(`copy (${query}) to stdout`, takeRow, () => resolve(false), reject));
    });
    client.release(ended);
    return ended;
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
  onRow: (line: Buffer) => boolean,
  resolve: () => void,
  reject: (error: unknown) => void,
): pg.Submittable {
  let isTaken = true;
  const handlers = {
    submit: (connection: CopyConnection) => connection.query(text),
    handleCopyData({ chunk }: { chunk: Buffer }) {
      if (isTaken) isTaken = onRow(chunk); // what had arrived before the connection was closed comes here, too
    },
    handleCommandComplete: () => {},
    handleReadyForQuery: resolve,
    handleError: reject,
  };
  return handlers as unknown as pg.Submittable; // the type declares only `submit`
}
