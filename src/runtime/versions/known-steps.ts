import type { Lifecycle } from './lifecycle.ts';

export interface KnownStepsOptions {
  /** Reads the registries again. */
  refresh(): Promise<void>;
  /** Receives why that failed. The step is done all the same; the registries are read again within seconds. */
  onError(error: unknown): void;
}

/**
 * The same lifecycle, except that this process knows of an operator's step when it is done: its next operation is answered accordingly, even if the
 * notification is still on its way.
 */
export function knownWhenDone(lifecycle: Lifecycle, { refresh, onError }: KnownStepsOptions): Lifecycle {
  async function known<T>(step: Promise<T>): Promise<T> {
    const done = await step;
    await refresh().catch(onError);
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
