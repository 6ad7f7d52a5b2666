// Milliseconds after the grace period for the database to finish writing what was aborted.
const lastMoments = 1000;

/** Waits for the end of work, and aborts it after the grace period. Resolves in bounded time, also if the work ignores that. */
export async function withinGrace(work: Promise<unknown>, grace: number, abort: () => void): Promise<void> {
  const timers: NodeJS.Timeout[] = [];
  const expired = new Promise<void>((resolve) => {
    timers.push(setTimeout(abort, grace));
    timers.push(setTimeout(resolve, grace + lastMoments));
  });
  try {
    await Promise.race([work, expired]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}
