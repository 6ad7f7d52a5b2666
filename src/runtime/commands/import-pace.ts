/** Measures how fast an import writes. Skipped parts do not count, because they do not predict how long the rest takes. */
export interface ImportPace {
  /** Records that the next part of the file is done. */
  done(part: { readonly written: number; readonly bytesRead: number }): void;
  /** Recent events written per second; null before the first write. */
  eventsPerSecond(): number | null;
  /** The estimated time for the rest of the file, if all of it must be written; null before the first write. */
  secondsLeft(bytesTotal: number): number | null;
}

// A few seconds of work: if an import gets slower, its rate soon shows it.
const partsKept = 32;

interface Part {
  readonly written: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** @param now milliseconds */
export function createImportPace(now: () => number = () => performance.now()): ImportPace {
  let writing: Part[] = [];
  let before = { at: now(), bytesRead: 0 };
  const sum = (of: (part: Part) => number) => writing.reduce((total, part) => total + of(part), 0);
  return {
    done({ written, bytesRead }) {
      const at = now();
      const part = { written, bytes: bytesRead - before.bytesRead, seconds: (at - before.at) / 1000 };
      before = { at, bytesRead };
      if (written > 0) writing = [...writing, part].slice(-partsKept);
    },
    eventsPerSecond: () =>
      writing.length === 0 ? null : sum(({ written }) => written) / sum(({ seconds }) => seconds),
    secondsLeft(bytesTotal) {
      const bytes = sum((part) => part.bytes);
      if (bytes <= 0) return null;
      return (Math.max(0, bytesTotal - before.bytesRead) * sum(({ seconds }) => seconds)) / bytes;
    },
  };
}
