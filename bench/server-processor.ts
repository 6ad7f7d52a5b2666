import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ticksPerSecond = 100; // of Linux on every architecture that it supports

/** Microseconds of processor time that a PostgreSQL server has used, with its sessions. Linux only. */
export function serverProcessor(dataDir: string): number {
  const [server] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
  let ticks = 0;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = statOf(entry);
    if (!stat) continue;
    // The fields after the name, which may contain spaces: state, parent, …; see proc(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [own, ofEnded] = [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])];
    if (entry === server) ticks += own + ofEnded;
    else if (fields[1] === server) ticks += own;
  }
  return (ticks / ticksPerSecond) * 1_000_000;
}

/** Undefined if the process has ended in the meantime. */
function statOf(process: string): string | undefined {
  try {
    return readFileSync(`/proc/${process}/stat`, 'utf8');
  } catch {
    return undefined;
  }
}
