import { claim } from '../claims.ts';
import { mayBeCut } from '../ledger.ts';
import type { Judge } from './judge.ts';

export const valuesHaveOneOwner: Judge = {
  name: 'values-have-one-owner',
  promise: 'a unique value has one owner in the log, and one that a refusal names as taken has an owner there',
  async differences({ events, answers, ledger }) {
    const owners = Map.groupBy(
      events.filter(({ family }) => family === claim.name).map(({ payload }) => payload as Claimed), // the family's
      ({ value }) => value,
    );
    return [
      ...[...owners].flatMap(([value, { length }]) => (length > 1 ? [`'${value}' has ${length} owners`] : [])),
      ...answers.flatMap(({ client, asked, askedAt, toldAt, response }) => {
        if (asked.kind !== 'claim' || !response.codes.includes('COMMAND_REJECTED')) return [];
        if (owners.get(asked.value)?.some(({ append }) => append !== asked.append)) return [];
        // The owner may be lost by now.
        if (mayBeCut(ledger.cuts, { sentAt: askedAt, acknowledgedAt: toldAt })) return [];
        return [`${client} was told that '${asked.value}' is taken, and nobody else has it: ${response.message}`];
      }),
    ];
  },
};

interface Claimed {
  readonly append: number;
  readonly value: string;
}
