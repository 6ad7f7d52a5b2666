/** A signal that re-arms after each wait. */
export interface Signal {
  fire(): void;
  /** Resolves the next time it fires. */
  next(): Promise<void>;
}

export function createSignal(): Signal {
  let { promise, resolve } = Promise.withResolvers<void>();
  return {
    fire() {
      resolve();
      ({ promise, resolve } = Promise.withResolvers<void>());
    },
    next: () => promise,
  };
}
