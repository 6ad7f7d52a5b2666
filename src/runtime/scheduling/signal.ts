/** Something that happens again and again, to be waited for. */
export interface Signal {
  fire(): void;
  /** Resolves the next time that it fires. */
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
