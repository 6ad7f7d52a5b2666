import type { CanaryRule, VersionState } from '../../projections/projection/version-map.ts';
import { type LiveProcess, readLiveProcesses } from '../../store/ownership/live-processes.ts';
import { readVersionsOf } from '../../store/registry/all-registries.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** The registry's data of a version that decides which version answers. */
export interface AnsweringCandidate {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
  readonly canary: CanaryRule | null;
  readonly error: { readonly code?: string } | null;
}

/** Which version of a read model answers, and in which processes. */
export interface AnsweringVersion {
  readonly name: string;
  /** Null if the processes declare versions of it and none of them answers. */
  readonly version: number | null;
  /** The version that answers some clients instead, for example `{ version: 3, percent: 5, header: null }`. */
  readonly canary: ({ readonly version: number } & CanaryRule) | null;
  /** The processes that answer this way. Empty if no gateway is live; then it is how a gateway that declares all versions would answer. */
  readonly processes: readonly string[];
}

/**
 * Returns which version answers for each read model: one entry if all gateways agree, otherwise one for each different result. A gateway that
 * declares no version of a read model does not offer it, and is in none of its entries.
 */
export function answeringVersions(
  registered: readonly AnsweringCandidate[],
  processes: readonly LiveProcess[],
): AnsweringVersion[] {
  return [...Map.groupBy(registered, ({ name }) => name)].flatMap(([name, versions]): readonly AnsweringVersion[] => {
    const gateways = processes.filter((one) => answersClients(one) && versions.some(isDeclaredBy(one)));
    if (gateways.length === 0) {
      const exists = versions.some(({ state }) => state !== 'retired');
      return exists ? [{ name, ...answerOf(versions), processes: [] }] : [];
    }
    const answers = gateways.map((gateway) => ({ gateway, answer: answerOf(versions.filter(isDeclaredBy(gateway))) }));
    return [...Map.groupBy(answers, ({ answer }) => JSON.stringify(answer)).values()]
      .flatMap((same) => same.slice(0, 1).map(({ answer }) => ({ name, ...answer, processes: same.map(nameOf) })))
      .toSorted((a, b) => (b.version ?? 0) - (a.version ?? 0));
  });
}

/** A process of an older release does not announce its role, so it may answer clients. */
export function answersClients({ role }: LiveProcess): boolean {
  return role !== 'worker';
}

function isDeclaredBy({ versions }: LiveProcess): (one: AnsweringCandidate) => boolean {
  return ({ name, version }) => versions.includes(`${name}@${version}`);
}

/** Returns which version answers in a process that declares these versions of a read model, in the order of their numbers. */
function answerOf(declared: readonly AnsweringCandidate[]): Pick<AnsweringVersion, 'version' | 'canary'> {
  const active = declared.findLast(({ state }) => state === 'active');
  if (!active || active.error?.code === 'TABLE_ALTERED') return { version: null, canary: null };
  const { version } = active;
  const trial = declared.find(({ state, canary }) => state === 'ready' && canary !== null);
  return { version, canary: trial?.canary ? { version: trial.version, ...trial.canary } : null };
}

function nameOf({ gateway }: { readonly gateway: LiveProcess }): string {
  return gateway.name;
}

/** Returns the live processes that declare no other active version of the projection: without this one they cannot answer for it. */
export async function losingProcesses(db: Queryable, name: string, version: number): Promise<LiveProcess[]> {
  const active = (await readVersionsOf(db, name)).filter((entry) => entry.state === 'active');
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
