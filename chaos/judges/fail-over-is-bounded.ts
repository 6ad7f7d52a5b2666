import type { Judge } from './judge.ts';

export const failOverIsBounded: Judge = {
  name: 'fail-over-is-bounded',
  promise:
    'the work of a lost process, and of one that a store does not hear, has another owner within the configured bound',
  async differences({ failOvers, boundMs }) {
    return failOvers
      .filter((one) => one.alone && one.milliseconds - one.cpuWaitMilliseconds > boundMs[one.cause])
      .map(
        ({ cause, processor, store, milliseconds, cpuWaitMilliseconds }) =>
          `${processor} in '${store}' had no owner for ${milliseconds} ms after a ${cause}; at most ${boundMs[cause]} ms are promised, and ${cpuWaitMilliseconds} ms without a free processor are allowed for`,
      );
  },
};
