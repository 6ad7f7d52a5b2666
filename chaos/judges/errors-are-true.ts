import { positionOf } from '../clients/told.ts';
import type { Judge } from './judge.ts';

/** What faults may lead to. Nothing else is an answer: least of all `INTERNAL_SERVER_ERROR`, which is a bug. */
const explained = new Set([
  'NETWORK',
  'DATABASE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'STREAM_LOCKED',
  'CONCURRENCY_CONFLICT',
  'POSITION_TIMEOUT',
  'PROJECTION_NOT_READY',
  'HISTORY_CHANGED',
]);
/** Only what writes can be left open or refused by the stream. */
const ofWrites = new Set(['OUTCOME_UNKNOWN', 'STREAM_LOCKED', 'CONCURRENCY_CONFLICT']);

export const errorsAreTrue: Judge = {
  name: 'errors-are-true',
  promise: 'clients are told only the errors that a fault explains, and HISTORY_CHANGED only after a lost tail',
  async differences({ answers, ledger }) {
    return answers.flatMap(({ client, asked, demanded, toldAt, response }) =>
      response.codes.flatMap((code) => {
        const where = `${client} (${asked.kind}${demanded ? ` at ${positionOf(demanded.text)}` : ''}) was told ${code}`;
        // A process that is about to end refuses what is new.
        if (code === 'RATE_LIMITED' && response.message?.startsWith('This process is stopping.')) return [];
        if (!explained.has(code)) return [`${where}: ${response.message}`];
        if (ofWrites.has(code) && asked.kind !== 'write') return [`${where}, and had written nothing`];
        if (code === 'HISTORY_CHANGED' && ledger.cuts.every(({ from }) => toldAt < from))
          return [`${where}, and no history was cut`];
        return [];
      }),
    );
  },
};
