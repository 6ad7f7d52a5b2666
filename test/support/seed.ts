/**
 * What tests draw at random follows from this number. In CI it is the same each time, so that what CI says is of the change at hand; elsewhere
 * each run draws other inputs. `SEED=n npm test` repeats a run.
 */
export const seed = process.env.SEED
  ? Number(process.env.SEED)
  : process.env.CI
    ? 1
    : Math.floor(Math.random() * 2 ** 31);
