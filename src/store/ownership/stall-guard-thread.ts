import { writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type pg from 'pg';
import type { GuardedStatement, StallGuardData } from './stall-guard.ts';

// The program of the thread of stall-guard.ts. It loads the driver only if the process stalls, and nothing else: a thread that costs nothing while
// all is well.

const { clock, hosts, config, stallMs, everyMs, longestMs } = workerData as StallGuardData; // see createStallGuard
let statement: GuardedStatement | null = null;
let client: pg.Client | undefined;
let isBusy = false;
let isReported = false;

parentPort?.on('message', (given: GuardedStatement | null) => {
  statement = given;
});

const sinceMs = (index: 0 | 1) => Number(process.hrtime.bigint() - Atomics.load(clock, index)) / 1e6;

async function connect(): Promise<pg.Client> {
  const { default: driver } = await import('pg');
  for (const host of hosts) {
    const tried = new driver.Client({ ...config, ...host });
    tried.on('error', () => {});
    try {
      await tried.connect();
      const { rows } = await tried.query<{ standby: boolean }>('select pg_is_in_recovery() as standby');
      if (rows[0]?.standby === false) return tried;
    } catch {
      // The next host may be the primary.
    }
    await tried.end().catch(() => {});
  }
  throw new Error('no host is the primary');
}

async function disconnect(): Promise<void> {
  const ended = client;
  client = undefined;
  await ended?.end().catch(() => {});
}

async function keep({ text, values, rows: expected }: GuardedStatement): Promise<void> {
  client ??= await connect();
  const sentAt = process.hrtime.bigint();
  const { rows } = await client.query(text, [...values]);
  // Only if nothing was lost: the process then takes all for kept.
  if (rows.length === expected) Atomics.store(clock, 1, sentAt);
}

async function look(): Promise<void> {
  const stalledMs = sinceMs(0);
  if (stalledMs < stallMs || !statement) {
    isReported = false;
    return disconnect();
  }
  if (stalledMs >= longestMs) {
    if (!isReported) writeSync(2, hangs);
    isReported = true;
    return disconnect();
  }
  if (sinceMs(1) >= everyMs) await keep(statement);
}

// The log is written by the event loop that stands still.
const hangs = `refold: the event loop of process ${process.pid} has stood still for ${Math.round(longestMs / 1000)} s. Its work is given up; other processes take it over. Look for code that never ends.\n`;

setInterval(() => {
  if (isBusy) return;
  isBusy = true;
  void look()
    .catch(disconnect) // tried again at the next look
    .finally(() => {
      isBusy = false;
    });
}, stallMs / 2);
