import { RefoldError } from '../../errors.ts';

/** Answers callers whose commits wait for something that may never come, such as a synchronous standby that is away. */
export interface StalledCommits {
  /**
   * Runs a write. While commits stall, it is refused before it begins, or left to itself if it has begun: it may be written later.
   *
   * @throws RefoldError `DATABASE_UNAVAILABLE`; `sent` is false if the write has not begun
   */
  run<T>(write: () => Promise<T>): Promise<T>;
  /** Called again and again with what commits wait for; undefined when they go on. */
  waitFor(what: string | undefined): void;
}

export function createStalledCommits(): StalledCommits {
  const leave = new Set<(error: RefoldError) => void>();
  let reason: string | undefined;
  return {
    run(write) {
      if (reason) return Promise.reject(unavailable(reason, { sent: false }));
      return new Promise((resolve, reject) => {
        leave.add(reject);
        void write()
          .then(resolve, reject)
          .finally(() => leave.delete(reject));
      });
    },
    waitFor(what) {
      reason = what;
      if (!what) return;
      for (const reject of leave) reject(unavailable(what, {}));
      leave.clear();
    },
  };
}

function unavailable(reason: string, fields: { readonly sent?: false }): RefoldError {
  return new RefoldError('DATABASE_UNAVAILABLE', `The database is not available: ${reason}.`, fields);
}
