import type { Lifecycle } from './lifecycle.ts';

/**
 * The same lifecycle, except that this process knows of an operator's step when it is done: its next operation is answered accordingly, even if the
 * notification is still on its way.
 *
 * @param refresh reads the registries again
 */
export function knownWhenDone(lifecycle: Lifecycle, refresh: () => Promise<void>): Lifecycle {
  async function known<T>(step: Promise<T>): Promise<T> {
    const done = await step;
    // The step is done, even if the connection was lost since. The registries are read periodically, which reports a failure.
    await refresh().catch(() => {});
    return done;
  }

  return {
    ...lifecycle,
    activate: (...given) => known(lifecycle.activate(...given)),
    rollback: (...given) => known(lifecycle.rollback(...given)),
    retire: (...given) => known(lifecycle.retire(...given)),
    startCanary: (...given) => known(lifecycle.startCanary(...given)),
    endCanary: (...given) => known(lifecycle.endCanary(...given)),
  };
}
