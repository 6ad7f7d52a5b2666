import type { Logger } from 'pino';
import type { Command } from '../../commands/define-command.ts';
import type { StreamState } from '../../commands/define-state.ts';
import { longestStreams } from '../../store/log/read-stream.ts';
import type { FoldedStream } from '../../store/log/stream-state.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** From this number of events on, reading a stream takes more than one statement, and longer than the rest of a command. */
const longStream = 1000;

const wayOut = 'Give its defineState { snapshotEvery: 100 }, so that only the events after a snapshot are read.';

/** Logs once for each declared state without snapshots that a long stream was read for it. */
export function createLongStreamLog(logger: Pick<Logger, 'warn'>): (folded: FoldedStream) => void {
  const named = new WeakSet<StreamState>();
  return ({ state, streamId, events }) => {
    if (events < longStream || state.snapshots || named.has(state)) return;
    named.add(state);
    const family = state.family.name;
    logger.warn(
      { family, streamId, events },
      `a state of ${family} was computed from ${events} events, all of its stream '${streamId}', and this state has no snapshots. ${wayOut}`,
    );
  };
}

/** Describes the longest stream of each family whose commands read streams from their first event. */
export async function describeLongStreams(db: Queryable, commands: readonly Command[]): Promise<string[]> {
  const read = commands.flatMap(({ states }) => states).filter(({ folds, snapshots }) => folds && !snapshots);
  const names = new Map(read.map(({ family }) => [family.storedName, family.name]));
  const longest = await longestStreams(db, [...names.keys()], longStream);
  return longest.map(
    ({ family, streamId, version }) =>
      `The stream '${streamId}' of ${names.get(family)} has ${version} events, and its commands' state has no snapshots: each command reads them all. ${wayOut}`,
  );
}
