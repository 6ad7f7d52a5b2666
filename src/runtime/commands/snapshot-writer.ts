import type { StreamState } from '../../commands/define-state.ts';
import { type StreamSnapshot, saveSnapshot } from '../../store/log/stream-snapshots.ts';
import type { StateOf } from '../../store/log/stream-state.ts';
import type { Queryable } from '../../store/postgres/statement.ts';

/** Keeps states that commands have folded, beside the commands: none waits for it, and none fails with it. */
export interface SnapshotWriter {
  /** Notes the state where it is worth keeping; call it before anything else gets hold of the state. `write` keeps it. */
  note(declared: StreamState, streamId: string, found: StateOf): { write(): void } | undefined;
  /** Resolves when what was asked for is written. */
  stop(): Promise<void>;
}

// Snapshots that wait while the database is slow; what comes beyond them is taken again by a later command.
const mostWaiting = 1000;

/** @param onError gets what could not be kept: once for each state that does not fit JSON, and each time where writing failed. */
export function createSnapshotWriter(db: Queryable, onError: (error: unknown) => void): SnapshotWriter {
  const waiting: StreamSnapshot[] = [];
  const unfit = new WeakSet<StreamState>();
  let writing = Promise.resolve();
  let busy = false;

  async function writeAll(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) await saveSnapshot(db, next).catch(onError);
    busy = false;
  }

  return {
    note(declared, streamId, { state, version, position, snapshotVersion }) {
      const { snapshots, family } = declared;
      if (!snapshots || version - snapshotVersion < snapshots.every || unfit.has(declared)) return undefined;
      if (waiting.length >= mostWaiting) return undefined;
      try {
        const json = snapshots.encode(state); // now: `decide` is given the state itself
        const { fingerprint } = snapshots;
        const snapshot = { family: family.name, streamId, fingerprint, streamPosition: version, position, state: json };
        return {
          write() {
            waiting.push(snapshot);
            if (busy) return;
            busy = true;
            writing = writeAll();
          },
        };
      } catch (error) {
        unfit.add(declared);
        onError(error);
        return undefined;
      }
    },
    stop: () => writing,
  };
}
