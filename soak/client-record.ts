/** What clients observed: how long each kind of operation took, which requests failed, and which responses were wrong. */
export interface ClientRecord {
  /** Durations of responses in milliseconds, with the time of each. */
  readonly latencies: ReadonlyMap<string, readonly Latency[]>;
  /** By kind and code: how often, and the first occurrence. */
  readonly failures: ReadonlyMap<string, Failure>;
  /** Events of a rolling deployment, with their counts: refused connections, reopened subscriptions. */
  readonly events: ReadonlyMap<string, number>;
  /** Each wrong response in a sentence. */
  readonly wrong: readonly string[];
  answered(kind: string, milliseconds: number): void;
  failed(kind: string, code: string, detail: string): void;
  happened(what: string): void;
  isWrong(sentence: string): void;
}

export interface Latency {
  readonly at: number;
  readonly milliseconds: number;
}

export interface Failure {
  readonly times: number;
  readonly first: string;
}

/** All are counted; this many are recorded in full. */
const maxTold = 50;
const longest = 1500;

/** `say` prints the first failure of each kind, and each wrong response, at once. */
export function createClientRecord(now: () => number, say: (line: string) => void): ClientRecord {
  const latencies = new Map<string, Latency[]>();
  const failures = new Map<string, Failure>();
  const events = new Map<string, number>();
  const wrong: string[] = [];
  return {
    latencies,
    failures,
    events,
    wrong,
    answered(kind, milliseconds) {
      const of = latencies.get(kind) ?? [];
      latencies.set(kind, of);
      of.push({ at: now(), milliseconds });
    },
    failed(kind, code, detail) {
      const name = `${kind}: ${code}`;
      const known = failures.get(name);
      if (!known) say(`FAILED ${name}: ${detail.slice(0, longest)}`);
      failures.set(name, {
        times: (known?.times ?? 0) + 1,
        first: known?.first ?? `after ${(now() / 1000).toFixed(1)} s: ${detail.slice(0, longest)}`,
      });
    },
    happened: (what) => void events.set(what, (events.get(what) ?? 0) + 1),
    isWrong(sentence) {
      if (wrong.length < maxTold) say(`WRONG ${sentence.slice(0, longest)}`);
      if (wrong.length < maxTold) wrong.push(`after ${(now() / 1000).toFixed(1)} s: ${sentence.slice(0, longest)}`);
      else if (wrong.length === maxTold) wrong.push('… and more');
    },
  };
}
