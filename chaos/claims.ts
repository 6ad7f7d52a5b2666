import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../src/index.ts';

export const claim = defineEvents('claim', {
  Claimed: z.object({ append: z.int(), part: z.int(), value: z.string() }),
});

/** Each value has one owner, as documented for a unique email. */
export function claims(version: number) {
  return defineProjection({
    name: 'claims',
    version,
    mode: 'inline',
    events: claim,
    table: { claimId: t.text().primaryKey(), value: t.text().unique() },
    key: (event) => event.streamId,
    evolve: { Claimed: (_, { payload: { value } }) => ({ value }) },
  });
}

// Few enough that most claims meet an earlier one; new ones come, because a value is taken for good.
const valuesAtATime = 20;
const appendsOfATime = 256;

/** One of the values that are claimed at the moment, or one of any time before. `appends`: how many there are. */
export function valueAt(appends: number, random: () => number): string {
  const now = Math.floor(appends / appendsOfATime);
  const time = random() < 0.8 ? now : Math.floor(random() * now);
  return `value ${time}.${Math.floor(random() * valuesAtATime)}`;
}
