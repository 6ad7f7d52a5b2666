/** Many callers, each with its next call when its last has ended, until the time is up. Calls a second, of all of them together. */
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
