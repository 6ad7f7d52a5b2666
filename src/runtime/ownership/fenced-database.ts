import type { OwnershipLock } from '../../store/ownership/ownership.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/**
 * Fences a processor's database by its ownership: once the ownership is lost, nothing is sent and nothing is committed, even if this process
 * was stalled and its timers have not run yet. A transaction begun before a stall cannot hold its locks against the next owner for longer
 * than `longestStallMs`: then the server rolls it back.
 */
export function fencedDatabase(db: Database, lock: OwnershipLock, longestStallMs: number): Database {
  return {
    ...db,
    query: whileOwned(db.query),
    async transaction(work, options) {
      lock.verify();
      return db.transaction(
        async (tx) => {
          const result = await work({
            ...tx,
            query: whileOwned(tx.query),
            async copyInto(text, pieces) {
              lock.verify();
              return tx.copyInto(text, pieces);
            },
          });
          lock.verify();
          return result;
        },
        { ...options, idleTimeoutMs: longestStallMs },
      );
    },
  };

  function whileOwned(query: Queryable['query']): Queryable['query'] {
    return async (statement) => {
      lock.verify();
      return query(statement);
    };
  }
}
