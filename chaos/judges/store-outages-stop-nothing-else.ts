import type { Answer } from '../clients/told.ts';
import type { StoreOutage } from '../store-faults.ts';
import type { Judge } from './judge.ts';

/** What clients get if what they ask for does not respond. */
const failures = new Set(['DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN', 'NETWORK']);
/** Of what the log's database answers alone. */
const ofTheLog: ReadonlySet<Answer['asked']['kind']> = new Set(['write', 'claim', 'sums', 'account']);

export const storeOutagesStopNothingElse: Judge = {
  name: 'store-outages-stop-nothing-else',
  promise: 'while a read store is away, appends and commands succeed, and what is in the database of the log goes on',
  async differences({ storeOutages, answers }) {
    return storeOutages.flatMap((outage) => {
      const where = `while the store was ${outage.how}`;
      return [
        ...(outage.appended > 0 ? [] : [`${where}, nothing was appended`]),
        ...outage.stuck.map((text) => `${where}, ${text}`),
        ...answers.flatMap((answer) => failuresOf(answer, outage).map((text) => `${where}, ${text}`)),
      ];
    });
  },
};

function failuresOf({ client, asked, askedAt, response }: Answer, { from, to }: StoreOutage): readonly string[] {
  if (!ofTheLog.has(asked.kind) || askedAt < from || askedAt > to) return [];
  return response.codes
    .filter((code) => failures.has(code))
    .map((code) => `${client} (${asked.kind}) got ${code}: ${response.message}`);
}
