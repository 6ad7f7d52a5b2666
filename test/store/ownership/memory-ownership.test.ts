import { RefoldError } from '../../../src/errors.ts';
import { createMemoryOwnership, type HeldUnits } from '../../../src/store/ownership/memory-ownership.ts';
import { describeOwnership } from './ownership.contract.ts';

const held: HeldUnits = new Map();

describeOwnership({
  kind: 'memory',
  open: (url) => createMemoryOwnership(url, held),
  async takeAway(_, name) {
    for (const [unit, lost] of held) {
      if (!unit.includes(` ${name}@`)) continue;
      held.delete(unit);
      lost.abort(new RefoldError('PROCESSOR_FENCED', 'The unit was taken from its owner.'));
    }
  },
});
