import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';

/** `restarted`: the server was started since; the past may be another one. `cut`: it was proven that it is. */
export type HistoryChange = 'restarted' | 'cut';

/**
 * Whether what this process knows of the log is still true. Whoever keeps something that was read (a horizon, rows, positions) drops it when
 * this tells so: events may be gone that it came from, and others stand at their positions.
 */
export interface History {
  /** Rises with each change: what was known in another era counts no more. */
  readonly era: number;
  /** How often it was proven that events are gone which this process knew. */
  readonly cuts: number;
  /** Called at once, before whoever found out goes on. Returns what ends it. */
  onChange(listener: (change: HistoryChange) => void): () => void;
  /** Takes note of when the server was started, in microseconds: another start is a sign. */
  note(serverStart: bigint): void;
  /** What was known up to a position is gone. */
  cut(position: GlobalPosition): void;
}

export function createHistory(logger: Pick<Logger, 'warn' | 'error'>): History {
  const listeners = new Set<(change: HistoryChange) => void>();
  let knownStart: bigint | undefined;
  let era = 0;
  let cuts = 0;

  function changed(change: HistoryChange): void {
    era++;
    for (const listener of [...listeners]) listener(change);
  }

  return {
    get era() {
      return era;
    },
    get cuts() {
      return cuts;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    note(serverStart) {
      const before = knownStart;
      knownStart = serverStart;
      if (before === undefined || before === serverStart) return;
      logger.warn('the database server was started again: what this process knows of the log is read again');
      changed('restarted');
    },
    cut(position) {
      cuts++;
      logger.error(
        { position: position.toString() },
        `history has changed: events up to position ${position} that this process knew are gone, as after a fail-over that lost events or a restore. Everything is read again, and clients get HISTORY_CHANGED.`,
      );
      changed('cut');
    },
  };
}

/** For whoever remembers a position of a history that is gone. */
export function historyChanged(position: GlobalPosition): RefoldError<'HISTORY_CHANGED'> {
  return new RefoldError(
    'HISTORY_CHANGED',
    `Position ${position} is of a history that is gone: the database lost events, as in a fail-over or a restore. Forget what was read before, and read again without demanding a position.`,
    { position: position.toString() },
  );
}
