import type { Place } from './place.ts';
import type { AppProcess } from './processes.ts';

/** A place, and the process that runs there. */
export interface Running {
  readonly place: Place;
  readonly process: AppProcess;
}

/** Works on the process in this place, or in the next place that has a running process. */
export async function withOneOf(
  places: readonly Place[],
  index: number,
  work: (running: Running) => Promise<string>,
): Promise<string> {
  const inTurn = places.map((_, turn) => places[(index + turn) % places.length]);
  for (const place of inTurn) {
    const process = place?.process;
    if (place && process && !process.stopped) return work({ place, process });
  }
  return 'all are down or stalled';
}

export function wake(process: AppProcess): void {
  if (process.stopped) process.signal('SIGCONT');
}
