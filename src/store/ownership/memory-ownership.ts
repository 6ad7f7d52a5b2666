import { unitText } from '../server/processor-unit.ts';
import type { Ownership } from './ownership.ts';

/** The units that have an owner, by database and name, each with the signal of its loss. */
export type HeldUnits = Map<string, AbortController>;

// Applications in one process that use the same database share their units.
const heldInThisProcess: HeldUnits = new Map();

/**
 * Ownership in the memory of this process. Nothing is sent to the server, so other processes are not excluded: their batches and those of
 * this process fence each other.
 *
 * @param url the database that the units belong to
 */
export function createMemoryOwnership(url: string, held: HeldUnits = heldInThisProcess): Ownership {
  const own = new Map<string, AbortController>();
  let closed = false;

  function release(unit: string, lost: AbortController): void {
    if (own.get(unit) === lost) own.delete(unit);
    if (held.get(unit) === lost) held.delete(unit);
  }

  return {
    async tryAcquire(unit) {
      const name = `${url} ${unitText(unit)}`;
      if (closed || held.has(name)) return null;
      const lost = new AbortController();
      held.set(name, lost);
      own.set(name, lost);
      return {
        lost: lost.signal,
        verify: () => lost.signal.throwIfAborted(),
        release: async () => release(name, lost),
      };
    },
    async close() {
      closed = true;
      for (const [unit, lost] of [...own]) release(unit, lost);
    },
  };
}
