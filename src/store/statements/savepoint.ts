import type { Queryable } from './statement.ts';

/** Runs a part of a transaction. If it fails, its effects are rolled back and the transaction can continue. */
export async function savepoint<T>(tx: Queryable, work: () => Promise<T>): Promise<T> {
  await tx.query({ text: 'savepoint part' });
  try {
    const result = await work();
    await tx.query({ text: 'release savepoint part' });
    return result;
  } catch (error) {
    // Also released, because an outer savepoint with the same name must become visible again.
    await tx.query({ text: 'rollback to savepoint part; release savepoint part' });
    throw error;
  }
}
