import { Counter, Gauge, type Registry } from 'prom-client';

/** One labelled series per entity, read at scrape time. */
export interface ScrapedMetrics<T> {
  /** Null omits the entity. */
  gauge(name: string, help: string, measure: (thing: T) => number | null): void;
  counter(name: string, help: string, measure: (thing: T) => number): void;
}

export interface ScrapedMetricsOptions<T> {
  readonly registry: Registry;
  /** Returns the entities, once for all metrics of a scrape. If it fails, the metrics are omitted. */
  readonly look: () => Promise<readonly T[]>;
  readonly labelsOf: (thing: T) => Readonly<Record<string, string>>;
  readonly labelNames: readonly string[];
}

// A scrape reads all metrics at about the same time.
const lookKeptMilliseconds = 1000;

/** Creates metrics that are read at scrape time, so every process reports the same values, whichever does the work. */
export function scrapedMetrics<T>({
  registry,
  look,
  labelsOf,
  labelNames,
}: ScrapedMetricsOptions<T>): ScrapedMetrics<T> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<readonly T[]> = Promise.resolve([]);

  function things(): Promise<readonly T[]> {
    if (performance.now() - lookedAt > lookKeptMilliseconds) {
      lookedAt = performance.now();
      looking = look().catch(() => []);
    }
    return looking;
  }

  const common = { labelNames: [...labelNames], registers: [registry] };
  return {
    gauge(name, help, measure) {
      new Gauge({
        ...common,
        name,
        help,
        async collect() {
          this.reset();
          for (const thing of await things()) {
            const value = measure(thing);
            if (value !== null) this.set(labelsOf(thing), value);
          }
        },
      });
    },
    counter(name, help, measure) {
      new Counter({
        ...common,
        name,
        help,
        async collect() {
          this.reset();
          for (const thing of await things()) this.inc(labelsOf(thing), measure(thing));
        },
      });
    },
  };
}
