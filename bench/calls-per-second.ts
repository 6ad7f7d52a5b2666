/** Many callers, each of which starts its next call when the last has ended, until the time is up. Returns the calls per second of all together. */
export async function callsPerSecond(
  callers: number,
  milliseconds: number,
  call: (caller: number) => Promise<unknown>,
) {
  const start = performance.now();
  let calls = 0;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      while (performance.now() - start < milliseconds) {
        await call(caller);
        calls++;
      }
    }),
  );
  return calls / ((performance.now() - start) / 1000);
}
