import type { CanaryRule, VersionState } from '../../projections/declaration/version-map.ts';
import type { LiveProcess } from '../../store/ownership/live-processes.ts';

/** What the registry says of a version, as far as it decides what answers. */
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
  /** Null where the processes declare versions of it and none of these answers. */
  readonly version: number | null;
  /** The version that some of their clients are answered by instead, such as `{ version: 3, percent: 5, header: null }`. */
  readonly canary: ({ readonly version: number } & CanaryRule) | null;
  /** The processes that answer so. None where no gateway lives: a gateway with the declarations of all versions would answer so. */
  readonly processes: readonly string[];
}

/**
 * Which version answers for each read model: one entry where all gateways agree, else one for each answer. A gateway that declares no version
 * of a read model does not have it in its API and is in none of its entries.
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

/** Of one of an older release it is not known; it may. */
export function answersClients({ role }: LiveProcess): boolean {
  return role !== 'worker';
}

function isDeclaredBy({ versions }: LiveProcess): (one: AnsweringCandidate) => boolean {
  return ({ name, version }) => versions.includes(`${name}@${version}`);
}

/** What answers clients of a process that declares these versions of a read model, in the order of their numbers. */
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
