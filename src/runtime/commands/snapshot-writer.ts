import type { StreamState } from '../../commands/define-state.ts';
import { type StreamSnapshot, saveSnapshot } from '../../store/log/stream-snapshots.ts';
import type { StateOf } from '../../store/log/stream-state.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** Stores snapshots of folded states in the background. No command waits for a snapshot or fails because of one. */
export interface SnapshotWriter {
  /** Takes a snapshot if the state is worth one; call it before any other code receives the state. `write` stores it. */
  note(declared: StreamState, streamId: string, found: StateOf): { write(): void } | undefined;
  /** Resolves when all requested snapshots are written. */
  stop(): Promise<void>;
}

// The limit of snapshots that wait while the database is slow. A later command takes any that do not fit.
const maxWaiting = 1000;

/** @param onError receives what could not be stored: once for each declared state that does not fit JSON, and each time a write fails. */
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
      if (waiting.length >= maxWaiting) return undefined;
      try {
        const json = snapshots.encode(state); // encode now: `decide` receives the same object
        const { fingerprint } = snapshots;
        const at = { family: family.storedName, streamId, streamPosition: version, position };
        const snapshot = { ...at, fingerprint, state: json };
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
