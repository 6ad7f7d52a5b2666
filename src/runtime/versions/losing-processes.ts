import { type LiveProcess, readLiveProcesses } from '../../store/ownership/live-processes.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { answersClients } from './answering-versions.ts';

/** Returns the live processes that declare no other active version of the projection: without this one they cannot answer for it. */
export async function losingProcesses(db: Queryable, name: string, version: number): Promise<LiveProcess[]> {
  const active = (await readRegistry(db)).filter((entry) => entry.name === name && entry.state === 'active');
  if (!active.some((entry) => entry.version === version)) return [];
  const others = active.filter((entry) => entry.version !== version).map((entry) => `${name}@${entry.version}`);
  return (await readLiveProcesses(db)).filter(
    (one) =>
      answersClients(one) &&
      one.versions.includes(`${name}@${version}`) &&
      !others.some((other) => one.versions.includes(other)),
  );
}

/** For example `web-1:4711 (gateway), web-2:4711 (gateway)`. */
export function processesText(processes: readonly LiveProcess[]): string {
  return processes.map(({ name, role }) => (role === null ? name : `${name} (${role})`)).join(', ');
}
