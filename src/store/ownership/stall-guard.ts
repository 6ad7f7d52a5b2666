import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Host, parseHostList } from '../../config/host-list.ts';

/** What keeps an ownership. */
export interface GuardedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** How many rows it returns if nothing is lost. */
  readonly rows: number;
}

/** What the thread is started with. */
export interface StallGuardData {
  /** By `process.hrtime`, which all threads share: the last turn of the event loop, and the last statement that kept everything. */
  readonly clock: BigInt64Array;
  readonly hosts: readonly Partial<Host>[];
  readonly config: Readonly<Record<string, unknown>>;
  /** In milliseconds, as the others. */
  readonly stallMs: number;
  readonly everyMs: number;
  readonly longestMs: number;
}

export interface StallGuardOptions {
  readonly url: string;
  readonly applicationName: string;
  /** How long an ownership lasts without a sign of life, in milliseconds. */
  readonly lasts: number;
}

/** Keeps an ownership while the event loop of this process stands still because code of the application is at work. */
export interface StallGuard {
  /** Sets the statement that keeps what is owned; null if nothing is. The first one starts the thread. */
  keep(statement: GuardedStatement | null): void;
  /** How long ago the thread kept everything, in milliseconds. `Infinity` if it never did. */
  readonly keptMsAgo: number;
  close(): Promise<void>;
}

// In milliseconds. No event should take so long; a process that hangs for good must lose its work some time.
const longestStall = 300_000;
// So that a stall that begins just before a renewal is noticed well before the end.
const noticedAfter = 1 / 12;

/**
 * A thread of this process that sends a statement for it as long as its event loop stands still, for five minutes at most. It has a connection only
 * during a stall. A process that is suspended or killed is not kept: its threads are, too.
 */
export function createStallGuard({ url, applicationName, lasts }: StallGuardOptions): StallGuard {
  const clock = new BigInt64Array(new SharedArrayBuffer(16));
  const beat = () => Atomics.store(clock, 0, process.hrtime.bigint());
  const stallMs = lasts * noticedAfter;
  const everyMs = lasts / 3;
  let worker: Worker | undefined;
  let beats: NodeJS.Timeout | undefined;

  function start(): Worker {
    const list = parseHostList(url);
    const config = {
      connectionString: list?.url ?? url,
      application_name: applicationName,
      connectionTimeoutMillis: everyMs,
      query_timeout: everyMs,
    };
    const hosts = list && list.hosts.length > 1 ? list.hosts : [{}];
    beat();
    beats = setInterval(beat, stallMs / 4);
    beats.unref();
    const data: StallGuardData = { clock, hosts, config, stallMs, everyMs, longestMs: longestStall };
    // Not with what the program was started with: that may load anything.
    const started = new Worker(join(import.meta.dirname, `stall-guard-thread${import.meta.filename.slice(-3)}`), {
      workerData: data,
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      name: applicationName,
    });
    started.on('error', () => {}); // without the thread, a stall may cost the ownership, and the fence keeps it harmless
    started.unref();
    return started;
  }

  return {
    keep(statement) {
      if (!worker && !statement) return;
      worker ??= start();
      worker.postMessage(statement);
    },
    get keptMsAgo() {
      const keptAt = Atomics.load(clock, 1);
      return keptAt === 0n ? Number.POSITIVE_INFINITY : Number(process.hrtime.bigint() - keptAt) / 1e6;
    },
    async close() {
      clearInterval(beats);
      await worker?.terminate();
    },
  };
}
