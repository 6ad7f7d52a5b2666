/** The stream of each call. */
export interface OwnStreams {
  next(caller: number): string;
  /** Calls up to now, of all callers. */
  readonly calls: number;
}

/** Calls to each stream. */
export const callsOfStream = 10;

/** Each caller has streams of its own, one after the other. */
export function createOwnStreams(): OwnStreams {
  const callsOf = new Map<number, number>();
  let calls = 0;
  return {
    next(caller) {
      const call = callsOf.get(caller) ?? 0;
      callsOf.set(caller, call + 1);
      calls++;
      return `cart-${caller}-${Math.floor(call / callsOfStream)}`;
    },
    get calls() {
      return calls;
    },
  };
}
