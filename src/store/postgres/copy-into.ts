import type pg from 'pg';

/**
 * Runs `copy … from stdin` with these pieces of text, whatever their borders. Nothing is sent faster than the server takes it.
 *
 * @throws the driver's error
 */
export function copyInto(client: pg.ClientBase, text: string, pieces: Iterable<string>): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    client.query(copyIn(text, pieces, resolve, reject));
  });
}

interface CopyConnection {
  readonly stream: { readonly writableNeedDrain: boolean; once(event: 'drain' | 'close', listener: () => void): void };
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/** What the driver calls while it runs a query of somebody's own making. */
function copyIn(
  text: string,
  pieces: Iterable<string>,
  resolve: () => void,
  reject: (error: unknown) => void,
): pg.Submittable {
  let failed = false;
  let broken: { readonly error: unknown } | undefined;

  async function send(connection: CopyConnection): Promise<void> {
    try {
      for (const piece of pieces) {
        connection.sendCopyFromChunk(Buffer.from(piece));
        const { stream } = connection;
        if (stream.writableNeedDrain) {
          await new Promise<void>((next) => {
            stream.once('drain', next);
            stream.once('close', next);
          });
        }
        // The server takes no more, and what comes next on the connection must not meet the rest of this.
        if (failed) return;
      }
      connection.endCopyFrom();
    } catch (error) {
      broken = { error };
      connection.sendCopyFail('the rows could not be made');
    }
  }

  const handlers = {
    submit: (connection: CopyConnection) => connection.query(text),
    handleCopyInResponse: (connection: CopyConnection) => void send(connection),
    handleCommandComplete: () => {},
    handleReadyForQuery: resolve,
    handleError(error: unknown) {
      failed = true;
      reject(broken ? broken.error : error);
    },
  };
  return handlers as unknown as pg.Submittable; // its type knows no more than `submit` of what the driver calls
}
