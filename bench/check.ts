/** A benchmark of a wrong result is worth nothing. */
export function check(condition: boolean, problem: () => string): asserts condition {
  if (!condition) throw new Error(`Wrong result: ${problem()}`);
}
