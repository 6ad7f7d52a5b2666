import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';

/** `restarted`: the server was started again, and its history may be different. `cut`: history is proven to be different. */
export type HistoryChange = 'restarted' | 'cut';

/**
 * Tracks whether what this process knows of the log is still true. Code that keeps something it has read (a horizon, rows, positions) drops
 * it on a change: the events it came from may be gone, with other events at their positions.
 */
export interface History {
  /** Rises with each change. Knowledge from an earlier era is invalid. */
  readonly era: number;
  /** How often it was proven that events known to this process are gone. */
  readonly cuts: number;
  /** Listeners run synchronously, before the code that found the change continues. The returned function removes the listener. */
  onChange(listener: (change: HistoryChange) => void): () => void;
  /** Records when the server was started, in microseconds. A different start time indicates a restart. */
  note(serverStart: bigint): void;
  /** Reports that the events known up to a position are gone. */
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

/** The error for anything that refers to a position of a history that is gone. */
export function historyChanged(position: GlobalPosition): RefoldError<'HISTORY_CHANGED'> {
  return new RefoldError(
    'HISTORY_CHANGED',
    `Position ${position} is of a history that is gone: the database lost events, as in a fail-over or a restore. Discard what was read before, and read again without demanding a position.`,
    { position: position.toString() },
  );
}
