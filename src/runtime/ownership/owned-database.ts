import type { OwnershipLock } from '../../store/ownership/ownership.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';

/**
 * The database in the hands of a processor's owner: nothing is sent and nothing is committed once the ownership is lost, also where this
 * process was stalled and has not run its timers yet. What it had begun before a stall does not keep its locks from the next
 * owner for longer than `longestStallMs`: the server rolls it back.
 */
export function ownedDatabase(db: Database, lock: OwnershipLock, longestStallMs: number): Database {
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
