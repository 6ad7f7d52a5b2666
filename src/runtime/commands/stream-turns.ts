import type { RecordedEvent } from '../../events/event.ts';

/** Whose commands stand in line: a family and the id of one of its streams. */
export type StreamName = Pick<RecordedEvent, 'family' | 'streamId'>;

/**
 * The commands of a process that meet on one stream, one after the other: each that decides beside another would lose, and read the
 * stream again for nothing. What makes it right is the version that a command is appended under, so a turn is waited for, but not for long.
 */
export interface StreamTurns {
  /** Whether others stand in line. */
  isTaken(stream: StreamName): boolean;
  /** Resolves when it is the caller's turn, or after {@link patience}; what it gives ends the turn. */
  take(stream: StreamName): Promise<() => void>;
}

// As long as an append waits for a lock by default: where one is held up by another transaction, the others fail with it, not each after the other.
const patience = 5000;

export function createStreamTurns(): StreamTurns {
  /** The end of the last turn in each line. */
  const lines = new Map<string, Promise<void>>();
  return {
    isTaken: (stream) => lines.has(lineOf(stream)),
    async take(stream) {
      const line = lineOf(stream);
      const before = lines.get(line);
      const { promise: over, resolve } = Promise.withResolvers<void>();
      lines.set(line, over);
      if (before) await noLongerThan(patience, before);
      return () => {
        resolve();
        if (lines.get(line) === over) lines.delete(line);
      };
    },
  };
}

function lineOf({ family, streamId }: StreamName): string {
  return `${family} ${streamId}`; // a family's name has no space
}

async function noLongerThan(milliseconds: number, promise: Promise<void>): Promise<void> {
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  await Promise.race([promise, enough]);
  clearTimeout(timer);
}
