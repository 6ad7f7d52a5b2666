/** How fast an import writes. What it only skips tells nothing of how long the rest takes. */
export interface ImportPace {
  /** The next part of the file is done. */
  done(part: { readonly written: number; readonly bytesRead: number }): void;
  /** Events that were written a second, lately; null before any. */
  eventsPerSecond(): number | null;
  /** For the rest of the file, if all of it has to be written; null before anything was. */
  secondsLeft(bytesTotal: number): number | null;
}

// Some seconds: an import that gets slower is soon shown as slow as it is.
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
