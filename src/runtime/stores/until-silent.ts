import { setTimeout as pause } from 'node:timers/promises';
import type { ReadStore } from '../../store/read-store.ts';
import { responds } from '../../store/server/responds.ts';

// An operator must not wait for one store to see the others. A store that is slow responds to the question, however long its statement takes.
const firstMs = 1000;
const withinMs = 2000;

/** While something is read from a store: resolves if the store does not respond to a new connection. Rejects if the signal aborts. */
export async function untilSilent({ url }: Pick<ReadStore, 'url'>, signal: AbortSignal): Promise<void> {
  do await pause(firstMs, undefined, { signal });
  while (await responds(url, withinMs));
}
