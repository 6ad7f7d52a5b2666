import type { Database } from '../postgres/database.ts';
import type { Transaction } from '../postgres/transaction.ts';
import type { Queryable } from '../statements/statement.ts';

/** A read-only transaction that stays open: all its reads see the same state of the database. */
export interface ReadSnapshot extends Queryable {
  /** Ends the snapshot after the running reads, and releases the connection. Later reads are refused. */
  close(): Promise<void>;
}

export interface ReadSnapshotOptions {
  /** The statement timeout, in milliseconds. */
  readonly statementTimeout: number;
}

/** Reserves a connection at once. The first read determines the snapshot. */
export function openReadSnapshot(db: Database, { statementTimeout }: ReadSnapshotOptions): ReadSnapshot {
  const opened = Promise.withResolvers<Transaction>();
  const closing = Promise.withResolvers<void>();
  let closed = false;
  let last: Promise<unknown> = Promise.resolve(); // one statement at a time on the connection

  const work = async (tx: Transaction) => {
    if (closed) return;
    await tx.query({ text: `set local statement_timeout = ${Math.trunc(statementTimeout)}` });
    opened.resolve(tx);
    await closing.promise;
  };
  const ended = db.transaction(work, { isolation: 'repeatable read', readOnly: true }).catch(opened.reject);
  // It may fail while nobody waits for it.
  opened.promise.catch(() => {});

  return {
    elsewhere: db.elsewhere,
    query(statement) {
      if (closed) return Promise.reject(refused());
      const answer = Promise.all([opened.promise, last]).then(([tx]) => tx.query<never>(statement));
      last = answer.catch(() => {});
      return answer;
    },
    close() {
      closed = true;
      opened.reject(refused());
      // Reads that were requested before the close still run.
      void last.then(() => closing.resolve());
      return ended;
    },
  };
}

function refused(): Error {
  return new Error('A read was started after its operation had ended.');
}
