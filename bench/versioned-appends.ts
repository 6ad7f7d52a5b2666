import { check } from './check.ts';
import { callsOfStream } from './own-streams.ts';

/** Appends one event. False if it was refused because the stream is not at the expected version. */
export type AppendAt = (streamId: string, expectedVersion: number) => Promise<boolean>;

export interface VersionedAppends {
  /** The next append of a caller; each has its own streams. Throws if it was refused wrongly, or wrongly accepted. */
  append(caller: number): Promise<void>;
  /** Number of acknowledged events. */
  written(): number;
}

/** Callers that expect the version that they know of their stream and, `withConflicts`, in one of ten calls the version before it. */
export function createVersionedAppends(prefix: string, appendAt: AppendAt, withConflicts: boolean): VersionedAppends {
  const calls = new Map<number, number>();
  let written = 0;
  return {
    async append(caller) {
      const call = calls.get(caller) ?? 0;
      calls.set(caller, call + 1);
      const streamId = `${prefix}-${caller}-${Math.floor(call / callsOfStream)}`;
      const place = call % callsOfStream;
      // Never a stream's first call, because there is no past version yet; and not the same call for all callers.
      const stalePlace = withConflicts ? 1 + (caller % (callsOfStream - 1)) : Number.POSITIVE_INFINITY;
      const version = place > stalePlace ? place - 1 : place;
      const isStale = place === stalePlace;
      const isWritten = await appendAt(streamId, isStale ? version - 1 : version);
      check(
        isWritten !== isStale,
        () => `at version ${version} of ${streamId}, stale: ${isStale}, written: ${isWritten}`,
      );
      if (isWritten) written++;
    },
    written: () => written,
  };
}
