import type { RecordedEvent } from '../../events/event.ts';

/** Identifies a stream: its family and its id. */
export type StreamName = Pick<RecordedEvent, 'family' | 'streamId'>;

/**
 * Lets the commands of a process that meet on one stream run one after the other. Concurrent ones would conflict and read the stream again for
 * nothing. The expected version of the append keeps commands correct, so a turn is only an optimization and the wait for it is short.
 */
export interface StreamTurns {
  /** Whether a command already has or waits for a turn. */
  isTaken(stream: StreamName): boolean;
  /** Resolves when it is the caller's turn on each of the streams, or after {@link turnTimeoutMs} for each. The returned function ends the turns. */
  take(streams: readonly StreamName[]): Promise<() => void>;
}

// As long as an append waits for a lock by default: if another transaction blocks the stream, waiting commands fail together, not one after
// the other.
const turnTimeoutMs = 5000;

export function createStreamTurns(): StreamTurns {
  /** By stream, the end of the last turn in its queue. */
  const lines = new Map<string, Promise<void>>();
  const takeOne = async (line: string): Promise<() => void> => {
    const before = lines.get(line);
    const { promise: over, resolve } = Promise.withResolvers<void>();
    lines.set(line, over);
    if (before) await noLongerThan(turnTimeoutMs, before);
    return () => {
      resolve();
      if (lines.get(line) === over) lines.delete(line);
    };
  };
  return {
    isTaken: (stream) => lines.has(lineOf(stream)),
    async take(streams) {
      const ends: (() => void)[] = [];
      // In one order for all commands: two of them never wait for each other.
      for (const line of streams.map(lineOf).sort()) ends.push(await takeOne(line));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

function lineOf({ family, streamId }: StreamName): string {
  return `${family} ${streamId}`; // a family's name contains no space
}

async function noLongerThan(milliseconds: number, promise: Promise<void>): Promise<void> {
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  await Promise.race([promise, enough]);
  clearTimeout(timer);
}
