import { setTimeout as pause } from 'node:timers/promises';
import type { Refold } from '../refold.ts';

/** Waits until every maintained version has folded all that was appended before the call. Fails where a processor has stopped. */
export async function untilCaughtUp(
  refold: Pick<Refold, 'log' | 'status'>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const head = await refold.log.head();
  for (;;) {
    options.signal?.throwIfAborted();
    const maintained = (await refold.status()).filter(({ state }) => state !== 'retired');
    const stopped = maintained.find(({ processor, error }) => processor === 'stopped' && error);
    if (stopped) throw new Error(`${stopped.name}@${stopped.version} has stopped: ${stopped.error?.message}`);
    // A building version that has come so far is not yet active: a query would not find it.
    if (maintained.every(({ position, state }) => position >= head && state !== 'building')) return;
    await pause(10);
  }
}
