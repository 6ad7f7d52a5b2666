import type { Database, Transaction } from '../postgres/database.ts';
import type { Queryable } from '../postgres/statement.ts';

/** A read-only transaction that stays open: all its reads see the same state of the database. */
export interface ReadSnapshot extends Queryable {
  /** Ends it after the reads that are running, and gives the connection back. Reads that come later are refused. */
  close(): Promise<void>;
}

export interface ReadSnapshotOptions {
  /** Milliseconds that the server works on one statement. */
  readonly statementTimeout: number;
}

/** Takes a connection from the pool at once; the snapshot is that of the first read. */
export function openReadSnapshot(db: Database, { statementTimeout }: ReadSnapshotOptions): ReadSnapshot {
  const opened = Promise.withResolvers<Transaction>();
  const closing = Promise.withResolvers<void>();
  let closed = false;
  let last: Promise<unknown> = Promise.resolve(); // one statement at a time on the one connection

  const work = async (tx: Transaction) => {
    if (closed) return;
    await tx.query({ text: `set local statement_timeout = ${Math.trunc(statementTimeout)}` });
    opened.resolve(tx);
    await closing.promise;
  };
  const ended = db.transaction(work, { isolation: 'repeatable read', readOnly: true }).catch(opened.reject);
  // Nobody may be waiting when it fails, or no read may ever come.
  opened.promise.catch(() => {});

  return {
    query(statement) {
      if (closed) return Promise.reject(refused());
      const answer = Promise.all([opened.promise, last]).then(([tx]) => tx.query<never>(statement));
      last = answer.catch(() => {});
      return answer;
    },
    close() {
      closed = true;
      opened.reject(refused());
      // What was asked before the end runs before the end.
      void last.then(() => closing.resolve());
      return ended;
    },
  };
}

function refused(): Error {
  return new Error('A read came after the end of its operation.');
}
