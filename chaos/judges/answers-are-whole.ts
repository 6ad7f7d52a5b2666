import { isDeepStrictEqual } from 'node:util';
import type { Answer } from '../clients/told.ts';
import type { Judge } from './judge.ts';

/** One operation reads one snapshot and one version of each projection. */
export const answersAreWhole: Judge = {
  name: 'answers-are-whole',
  promise: 'no response mixes two versions or two snapshots: fields with the same content agree',
  async differences({ answers }) {
    return answers.flatMap((answer) => {
      const { asked, response, client } = answer;
      if (response.codes.length > 0) return [];
      if (asked.kind === 'account') return twiceTheSame(answer);
      if (asked.kind !== 'sums') return [];
      const { balances, balancesAggregate } = response.data as unknown as Sums; // as selected
      const { nodes } = balances;
      const listed = {
        count: nodes.length,
        movements: nodes.reduce((sum, { movements }) => sum + BigInt(movements), 0n),
        weighted: nodes.reduce((sum, { weighted }) => sum + cents(weighted), 0n),
      };
      const summed = {
        count: balancesAggregate.count,
        movements: BigInt(balancesAggregate.sum.movements ?? 0),
        weighted: cents(balancesAggregate.sum.weighted ?? '0'),
      };
      return isDeepStrictEqual(listed, summed)
        ? []
        : [`${client} got a list of ${text(listed)} and an aggregate of ${text(summed)} in one response`];
    });
  },
};

interface Sums {
  readonly balances: { readonly nodes: readonly { readonly movements: number; readonly weighted: string }[] };
  readonly balancesAggregate: {
    readonly count: number;
    readonly sum: { readonly movements: string | null; readonly weighted: string | null };
  };
}

function twiceTheSame({ client, asked, response: { data } }: Answer): readonly string[] {
  if (isDeepStrictEqual(data?.balance, data?.again)) return [];
  return [`${client} got ${JSON.stringify(data)} for one account (${JSON.stringify(asked)})`];
}

function cents(amount: string): bigint {
  const [whole = '0', part = ''] = amount.split('.');
  return BigInt(whole + part.padEnd(2, '0'));
}

function text(sums: object): string {
  return Object.entries(sums)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}
