import type { Judge } from './judge.ts';

export const heldAnswersSaySo: Judge = {
  name: 'held-answers-say-so',
  promise: 'an answer that lacks an event which it was to include names the row as held, and no other answer does',
  async differences({ trials }) {
    return trials.heldAnswers.flatMap(({ what, lacksEvent, saysSo, isList, isOlder }) => {
      if (isOlder) return [`${what} is older than its event`];
      if (lacksEvent && !saysSo) return [`${what} lacks its event and looks fresh`];
      if (!lacksEvent && saysSo && !isList) return [`${what} has its event and is named as held`];
      return [];
    });
  },
};
