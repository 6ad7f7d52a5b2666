import type { Queryable } from './statement.ts';

/** A part of a transaction that leaves nothing behind where it fails, so that the transaction can go on without it. */
export async function savepoint<T>(tx: Queryable, work: () => Promise<T>): Promise<T> {
  await tx.query({ text: 'savepoint part' });
  try {
    const result = await work();
    await tx.query({ text: 'release savepoint part' });
    return result;
  } catch (error) {
    // Released as well, so that one around it is the one that its name stands for again.
    await tx.query({ text: 'rollback to savepoint part; release savepoint part' });
    throw error;
  }
}
