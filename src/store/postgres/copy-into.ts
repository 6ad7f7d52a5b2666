import type pg from 'pg';

/**
 * Runs `copy … from stdin` with these pieces of text. A piece may end anywhere. Respects backpressure: sends no faster than the server
 * reads.
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

/** The methods that the driver calls on a custom query. */
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
        // The server has stopped reading. The rest of the data must not be sent before the next statement.
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
  return handlers as unknown as pg.Submittable; // the type declares only `submit`
}
