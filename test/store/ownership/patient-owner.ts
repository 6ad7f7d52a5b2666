import type { Ownership, OwnershipLock } from '../../../src/store/ownership/ownership.ts';
import { isOutage } from '../../../src/store/postgres/database-errors.ts';
import { unitOf } from './unit-of.ts';

/** Retries while the database is unreachable: the timeout is as short as the renewal interval. */
export async function patiently(ownership: Ownership, name: string): Promise<OwnershipLock | null> {
  for (;;) {
    try {
      return await ownership.tryAcquire(unitOf(name));
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
  }
}
