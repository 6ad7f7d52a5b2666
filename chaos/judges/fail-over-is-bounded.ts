import type { Judge } from './judge.ts';

export const failOverIsBounded: Judge = {
  name: 'fail-over-is-bounded',
  promise: 'the work of a lost process has another owner within the configured bound',
  async differences({ failOvers, boundMs }) {
    return failOvers
      .filter(({ alone, cause, milliseconds }) => alone && milliseconds > boundMs[cause])
      .map(
        ({ cause, processor, milliseconds }) =>
          `${processor} had no owner for ${milliseconds} ms after a ${cause}; at most ${boundMs[cause]} ms are promised`,
      );
  },
};
