import { Gauge, type Registry } from 'prom-client';
import { readHead, readHorizon, readStalls, type Stall } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import { scrapedMetrics } from './scraped-metrics.ts';

// Each holder has a series of its own, and a pool of writers may have hundreds of names.
const maxHolders = 5;
// Appends are usually shorter.
const shortSeconds = 1;

/** Registers metrics of the log's horizon: up to where it can be read, and which sessions hold it back. */
export function registerHorizonMetrics(registry: Registry, db: Database): void {
  new Gauge({
    name: 'refold_horizon_lag_positions',
    help: 'Assigned positions that cannot be read yet, because an append below them is running.',
    registers: [registry],
    async collect() {
      this.remove();
      const horizon = await readHorizon(db).catch(() => null);
      if (horizon === null) return;
      const head = await readHead(db).catch(() => null);
      if (head !== null) this.set(Number(head - horizon));
    },
  });
  const { gauge } = scrapedMetrics({
    registry,
    look: async () => worstHolders(await readStalls(db)),
    labelsOf: ({ applicationName }) => ({ application_name: applicationName }),
    labelNames: ['application_name'],
  });
  gauge(
    'refold_horizon_holder_seconds',
    'How long a session has been appending, which keeps the log from being read past it; the longest of each application name, of five at most.',
    ({ seconds }) => seconds,
  );
}

function worstHolders(stalls: readonly Stall[]): readonly Stall[] {
  const longest = stalls.filter(({ seconds }) => seconds > shortSeconds).toSorted((a, b) => b.seconds - a.seconds);
  const first = longest.filter(
    ({ applicationName }, index) => longest.findIndex((one) => one.applicationName === applicationName) === index,
  );
  return first.slice(0, maxHolders);
}
