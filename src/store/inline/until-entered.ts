import { isTableError, sqlStateOf } from '../postgres/database-errors.ts';

/**
 * Repeats if nothing was written: because a table that was read ahead was replaced, because a table is damaged, whose version the appends then
 * leave, or because a version left the appends in the meantime.
 */
export async function untilEntered<T>(
  work: (lookAhead: boolean) => Promise<T>,
  leaveDamaged: (() => Promise<void>) | undefined,
): Promise<T> {
  let lookAhead = true;
  for (let canLeave = leaveDamaged !== undefined; ; ) {
    try {
      return await work(lookAhead);
    } catch (error) {
      if (isTableError(error) && lookAhead) lookAhead = false;
      else if (isTableError(error) && canLeave) {
        canLeave = false;
        await leaveDamaged?.();
      } else if (sqlStateOf(error) !== leftMeanwhile) throw error;
    }
  }
}

const leftMeanwhile = '40001'; // raised by refold.refuse_left(), and by nothing else in a READ COMMITTED transaction
