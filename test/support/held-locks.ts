import type { Database } from '../../src/store/postgres/database.ts';
import type { Transaction } from '../../src/store/postgres/transaction.ts';

/** A transaction of somebody else that is open, and holds what it has locked. */
export interface OpenTransaction {
  end(how: 'commit' | 'rollback'): Promise<void>;
}

/** Begins a transaction, and returns when it holds what `lock` locks. */
export async function openTransaction(
  db: Database,
  lock: (tx: Transaction) => Promise<unknown>,
): Promise<OpenTransaction> {
  const ended = Promise.withResolvers<'commit' | 'rollback'>();
  const locked = Promise.withResolvers<void>();
  const rolledBack = new Error('rolled back');
  const done = db
    .transaction(
      async (tx) => {
        await lock(tx);
        locked.resolve();
        if ((await ended.promise) === 'rollback') throw rolledBack;
      },
      { idleTimeoutMs: 0 }, // somebody else's
    )
    .catch((error: unknown) => {
      if (error !== rolledBack) throw error;
    });
  await Promise.race([locked.promise, done]); // it fails with `lock`
  return {
    end(how) {
      ended.resolve(how);
      return done;
    },
  };
}
