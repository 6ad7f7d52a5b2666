/** One turn of a contestant; returns its figure. */
export type Turn = () => Promise<number>;

/**
 * Lets the contestants take turns for some rounds. Each round begins with another contestant, because other load on the machine
 * should affect all of them. A missing contestant has no figures.
 */
export async function inTurn<Name extends string>(
  rounds: number,
  contestants: { readonly [N in Name]: Turn | undefined },
): Promise<{ readonly [N in Name]: readonly number[] | undefined }> {
  const entries = Object.entries<Turn | undefined>(contestants);
  const figures = new Map(entries.map(([name, turn]) => [name, turn ? ([] as number[]) : undefined]));
  for (let round = 0; round < rounds; round++) {
    for (let place = 0; place < entries.length; place++) {
      const [name, turn] = entries[(place + round) % entries.length] ?? [];
      if (name !== undefined && turn) figures.get(name)?.push(await turn());
    }
  }
  return Object.fromEntries(figures) as { readonly [N in Name]: readonly number[] | undefined }; // one entry for each name
}

export function median(figures: readonly number[]): number {
  return quantile(figures, 0.5);
}

/** Interpolates linearly between neighbours. */
export function quantile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const low = sorted[Math.floor(place)] ?? Number.NaN;
  const high = sorted[Math.ceil(place)] ?? Number.NaN;
  return low + (high - low) * (place - Math.floor(place));
}
