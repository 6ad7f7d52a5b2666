import type { Judge } from './judge.ts';

export const heldStreamsStopNothingElse: Judge = {
  name: 'held-streams-stop-nothing-else',
  promise: 'while a transaction holds a stream, appends to other streams go on',
  async differences({ heldStreams }) {
    // A statement that meets the held stream waits a tenth of a second. If appends waited for the stream itself, they would pause to its end.
    return heldStreams
      .filter(({ heldMs, longestPauseMs }) => longestPauseMs > heldMs / 2)
      .map(
        ({ streamId, heldMs, others, longestPauseMs }) =>
          `while ${streamId} was held for ${heldMs} ms, ${others} appends to others were acknowledged, and none for ${longestPauseMs} ms`,
      );
  },
};
