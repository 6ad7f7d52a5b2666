import type { Judge } from './judge.ts';

export const storesCatchUp: Judge = {
  name: 'stores-catch-up',
  promise: 'the versions of a read store that was away catch up by themselves',
  async differences({ storeOutages }) {
    return storeOutages.flatMap(({ how, behind }) => behind.map((text) => `after the store was ${how}, ${text}`));
  },
};
