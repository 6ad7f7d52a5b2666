import type { Judge } from './judge.ts';

export const streamsHaveNoGaps: Judge = {
  name: 'streams-have-no-gaps',
  promise: 'the positions of each stream are 1, 2, 3… in the order of the log, and its version is the last of them',
  async differences({ db, events }) {
    const versions = new Map<string, number>();
    const found: string[] = [];
    for (const { family, streamId, streamPosition, position } of events) {
      const stream = `${family} ${streamId}`;
      const expected = (versions.get(stream) ?? 0) + 1;
      if (streamPosition !== expected)
        found.push(`${stream}: expected position ${expected}, found ${streamPosition} (${position})`);
      versions.set(stream, streamPosition);
    }
    const streams = await db.query<{ stream: string; version: bigint }>({
      text: `select family || ' ' || stream_id as stream, version::bigint from refold.streams`,
    });
    for (const { stream, version } of streams) {
      if (Number(version) !== (versions.get(stream) ?? 0))
        found.push(`${stream} is at version ${version}, but has ${versions.get(stream) ?? 0} events`);
      versions.delete(stream);
    }
    return [...found, ...[...versions.keys()].map((stream) => `${stream} has events, but is not in refold.streams`)];
  },
};
