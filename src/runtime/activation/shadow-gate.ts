import type { ShadowStanding } from '../../store/registry/shadows.ts';

/** The verdict of compared live queries on a version that waits for them. */
export interface ShadowVerdict {
  /** `few`: not enough queries were compared yet. `different`: too many responses differed. */
  readonly outcome: 'met' | 'few' | 'different';
  readonly said: string;
}

export function shadowVerdict(standing: ShadowStanding): ShadowVerdict {
  const { name, version, queries, maxDifferent, withinSeconds, stopped, same, different, failed, example } = standing;
  const compared = same + different + failed;
  const differing = different + failed;
  const where = example && differing > 0 ? ` (last: ${example.operation}, ${placeOf(example.path)})` : '';
  if (compared >= queries && differing <= maxDifferent * compared)
    return { outcome: 'met', said: `of ${compared} live queries compared ${differing} were answered differently` };
  const id = `${name}@${version}`;
  const wayOut = stopped
    ? `The comparison was stopped: 'refold shadow ${id} --one-of 10' starts it again,`
    : `'refold shadow ${id}' shows more,`;
  const ends = `${wayOut} 'refold activate ${id}' activates it all the same.`;
  const time = `in the last ${timeText(withinSeconds)}`;
  if (compared < queries)
    return {
      outcome: 'few',
      said: `Waiting for ${queries} compared live queries ${time}: ${compared} so far, of which ${differing} were answered differently${where}. ${ends}`,
    };
  return {
    outcome: 'different',
    said: `Of ${compared} live queries compared ${time}, ${differing} were answered differently${where}: ${percent(differing / compared)}, and at most ${percent(maxDifferent)} may be. ${ends}`,
  };
}

function placeOf(path: string): string {
  return path === '' ? 'which it rejects' : `at ${path}`;
}

function timeText(seconds: number): string {
  const [size, unit] = ([[3600, 'hour'] as const, [60, 'minute'] as const].find(([one]) => seconds % one === 0) ?? [
    1,
    'second',
  ]) as readonly [number, string]; // one of them
  const count = seconds / size;
  return count === 1 ? unit : `${count} ${unit}s`;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
