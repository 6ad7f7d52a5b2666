/**
 * The seed of everything that tests draw at random. Each run has another one; in CI it is the date, so two runs of a day are
 * comparable. `SEED=n npm test` repeats a run. The first caller stores it for the workers: a run may begin before midnight.
 */
process.env.SEED ??= String(seedOf(process.env, new Date(), Math.random()));

export const seed = Number(process.env.SEED);

/** In CI the date, such as 20310731. */
export function seedOf({ CI }: { readonly CI?: string | undefined }, now: Date, random: number): number {
  return CI === undefined ? Math.floor(random * 2 ** 31) : Number(now.toISOString().slice(0, 10).replaceAll('-', ''));
}
