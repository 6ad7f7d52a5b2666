/** Limits the share of a process's time that a repeated piece of work takes. */
export interface Pace {
  /** Milliseconds until the work may run again; 0 if it may run now. */
  wait(): number;
  /** Records a run. */
  spent(milliseconds: number): void;
}

/** @param burst how much may be spent at once after a pause, in milliseconds */
export function createPace(share: number, burst: number, now: () => number = () => performance.now()): Pace {
  let level = 0;
  let at = now();

  function drain(): void {
    const time = now();
    level = Math.max(0, level - (time - at) * share);
    at = time;
  }

  return {
    wait() {
      drain();
      return Math.max(0, (level - burst) / share);
    },
    spent(milliseconds) {
      drain();
      level += milliseconds;
    },
  };
}
