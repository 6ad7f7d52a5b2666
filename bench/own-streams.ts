/** Gives each call its stream. */
export interface OwnStreams {
  next(caller: number): string;
  /** Calls so far, of all callers. */
  readonly calls: number;
}

/** Calls to each stream. */
export const callsOfStream = 10;

/** Each caller has its own streams, one after another. */
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
