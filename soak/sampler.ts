import type { Database } from '../src/store/postgres/database.ts';
import { isOutage } from '../src/store/postgres/database-errors.ts';
import { reasonOf } from '../src/thrown.ts';
import type { Sample, Series } from './bounds.ts';
import type { Latency } from './client-record.ts';
import type { Deployed } from './processes.ts';
import { percentile } from './slopes.ts';

export interface Sampler {
  /** Stops sampling; returns all figures. */
  end(latencies: ReadonlyMap<string, readonly Latency[]>): Promise<readonly Series[]>;
}

export interface SamplerOptions {
  readonly db: Database;
  /** Milliseconds since the run began, on the same clock as latencies. */
  readonly now: () => number;
  /** All running processes, and those that are never replaced. */
  readonly processes: () => readonly Deployed[];
  readonly steady: () => readonly Deployed[];
  /** Called with a sentence if a look at the database failed; its figures are missing then. */
  onMissed(sentence: string): void;
}

const databaseEveryMs = 10_000;
const processEveryMs = 1_000;
/** A full garbage collection is a pause of about ten milliseconds. */
const collectEveryMs = 20_000;
const latencyWindowMs = 15_000;

/** Samples the database and the processes periodically. */
export function startSampler({ db, now, processes, steady, onMissed }: SamplerOptions): Sampler {
  const began = now();
  const figures = new Map<string, { unit: string; samples: Sample[] }>();
  let events = 0;
  let wal: { readonly bytes: number; readonly events: number } | undefined;

  function add(name: string, unit: string, value: number, at = now() - began): void {
    const figure = figures.get(name) ?? { unit, samples: [] };
    figures.set(name, figure);
    figure.samples.push({ at, events, value });
  }

  async function lookAtDatabase(): Promise<void> {
    const tables = await readTables(db);
    events = tables.find(({ name }) => name === 'refold.events')?.rows ?? events;
    for (const { name, rows, bytes } of tables) {
      if (rows !== null) add(`rows of ${name}`, 'rows', rows);
      add(`size of ${name}`, 'bytes', bytes);
    }
    const server = await readServer(db);
    add('connections', 'connections', server.connections);
    if (wal && events > wal.events)
      add('write-ahead log', 'bytes an event', (server.walBytes - wal.bytes) / (events - wal.events));
    wal = { bytes: server.walBytes, events };
  }

  function lookAtProcesses(): void {
    const same = new Set(steady());
    for (const process of processes()) {
      const { figures: told, role } = process;
      if (!told) continue;
      const name = same.has(process) ? `steady ${role}` : `replaced ${role}s`;
      add(`memory of ${name}`, 'bytes', told.rss);
      if (told.heap !== undefined) add(`heap of ${name}`, 'bytes', told.heap);
      add(`event loop delay of ${name}, p99 of a second`, 'ms', told.delayP99);
    }
  }

  const looking = repeatedly(databaseEveryMs, () =>
    lookAtDatabase().catch((error: unknown) => {
      if (!isOutage(error)) throw error;
      onMissed(`no figures of the database: ${reasonOf(error)}`);
    }),
  );
  const timers = [
    setInterval(lookAtProcesses, processEveryMs),
    setInterval(() => {
      for (const process of steady()) process.collect();
    }, collectEveryMs),
  ];

  return {
    async end(latencies) {
      for (const timer of timers) clearInterval(timer);
      await looking.end();
      const ended = now();
      for (const [kind, all] of latencies) {
        const within = all.filter(({ at }) => at >= began && at <= ended);
        const windows = Map.groupBy(within, ({ at }) => Math.floor((at - began) / latencyWindowMs));
        for (const [window, of] of windows) {
          const times = of.map(({ milliseconds }) => milliseconds);
          const at = (window + 0.5) * latencyWindowMs;
          add(`p50 of ${kind}`, 'ms', percentile(times, 0.5), at);
          add(`p99 of ${kind}`, 'ms', percentile(times, 0.99), at);
        }
      }
      return [...figures].map(([name, { unit, samples }]) => ({ name, unit, samples }));
    },
  };
}

function repeatedly(everyMs: number, work: () => Promise<void>): { end(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let running: Promise<void> = Promise.resolve();
  const round = () => {
    running = work().then(() => {
      if (!isOver) timer = setTimeout(round, everyMs);
    });
  };
  round();
  return {
    async end() {
      isOver = true;
      clearTimeout(timer);
      await running;
    },
  };
}

interface TableFigures {
  readonly name: string;
  readonly rows: number | null;
  readonly bytes: number;
}

/** Each of Refold's own tables; the read models as one, because they come and go. */
async function readTables(db: Database): Promise<readonly TableFigures[]> {
  return db.query<TableFigures>({
    text: `
      select
        format('refold.%s', relname) as name,
        ((xpath('/row/c/text()', query_to_xml(format('select count(*) as c from refold.%I', relname), false, true, '')))[1]::text)::float8 as rows,
        pg_total_relation_size(pg_class.oid)::float8 as bytes
      from pg_class
      join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = 'refold' and relkind = 'r'
      union all
      select 'read models', null, coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::float8
      from pg_class
      join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = 'read_models' and relkind = 'r'`,
  });
}

async function readServer(db: Database): Promise<{ readonly connections: number; readonly walBytes: number }> {
  const [row] = await db.query<{ connections: number; walBytes: number }>({
    text: `
      select
        (
          select count(*)::float8
          from pg_stat_activity
          where datname = current_database() and application_name not like 'soak%' and application_name not like 'chaos%'
        ) as connections,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes"`,
  });
  if (!row) throw new Error('The server returned no figures.');
  return row;
}
