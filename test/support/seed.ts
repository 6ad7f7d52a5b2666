/**
 * What tests draw at random follows from this number. Each run draws other inputs; in CI those of the day, so that two runs of a day can be
 * compared. `SEED=n npm test` repeats a run. The first that asks leaves it for the workers: a run may begin before midnight.
 */
process.env.SEED ??= String(seedOf(process.env, new Date(), Math.random()));

export const seed = Number(process.env.SEED);

/** In CI the date, such as 20310731. */
export function seedOf({ CI }: { readonly CI?: string | undefined }, now: Date, random: number): number {
  return CI === undefined ? Math.floor(random * 2 ** 31) : Number(now.toISOString().slice(0, 10).replaceAll('-', ''));
}
