import { RefoldError } from '../../errors.ts';
import type { Database } from '../../store/postgres/database.ts';

/**
 * A database whose transactions are rolled back at their end. An operation that runs in one transaction, run on it, checks everything that it would
 * check, and changes nothing.
 */
export function rehearsalOf(db: Database): Database {
  return {
    ...db,
    async transaction(work, options) {
      let result: { readonly value: Awaited<ReturnType<typeof work>> } | undefined;
      try {
        await db.transaction(async (tx) => {
          result = { value: await work(tx) };
          throw new RolledBack();
        }, options);
      } catch (error) {
        if (!(error instanceof RolledBack)) throw error;
      }
      if (!result) throw new Error('a rehearsed transaction has no result');
      return result.value;
    },
  };
}

class RolledBack extends Error {}

/** Why an operation would be refused; null if it would not be. */
export async function refusalOf(rehearse: () => Promise<unknown>): Promise<RefoldError | null> {
  try {
    await rehearse();
    return null;
  } catch (error) {
    if (error instanceof RefoldError && refusals.includes((error as RefoldError).code)) return error; // instanceof yields the widest type
    throw error;
  }
}

const refusals: readonly RefoldError['code'][] = ['INVALID_TRANSITION', 'PROJECTION_CHANGED', 'BAD_USER_INPUT'];
