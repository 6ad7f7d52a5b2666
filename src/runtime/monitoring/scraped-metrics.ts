import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of which each has a value for every thing of one kind. */
export interface ScrapedMetrics<T> {
  /** Null leaves the thing out. */
  gauge(name: string, help: string, measure: (thing: T) => number | null): void;
  counter(name: string, help: string, measure: (thing: T) => number): void;
}

export interface ScrapedMetricsOptions<T> {
  readonly registry: Registry;
  /** What there is; asked once for all metrics of a scrape. Where it fails, the metrics are left out. */
  readonly look: () => Promise<readonly T[]>;
  readonly labelsOf: (thing: T) => Readonly<Record<string, string>>;
  readonly labelNames: readonly string[];
}

// A scrape asks for every metric at about the same time.
const lookKeptMilliseconds = 1000;

/** Metrics that are read when they are scraped, so that every process tells the same, whichever of them does the work. */
export function scrapedMetrics<T>({
  registry,
  look,
  labelsOf,
  labelNames,
}: ScrapedMetricsOptions<T>): ScrapedMetrics<T> {
  let lookedAt = 0;
  let looking: Promise<readonly T[]> = Promise.resolve([]);

  function things(): Promise<readonly T[]> {
    if (Date.now() - lookedAt > lookKeptMilliseconds) {
      lookedAt = Date.now();
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
