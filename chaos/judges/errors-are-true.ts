import { positionOf } from '../clients/told.ts';
import type { Judge } from './judge.ts';

/** Errors that faults may cause. Any other error is a bug, above all `INTERNAL_SERVER_ERROR`. */
const explained = new Set([
  'NETWORK',
  'DATABASE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'PARTLY_DONE',
  'STREAM_LOCKED',
  'CONCURRENCY_CONFLICT',
  'POSITION_TIMEOUT',
  'PROJECTION_NOT_READY',
  'HISTORY_CHANGED',
]);
/** Only a write can have an unknown outcome, or be refused because of its stream. */
const ofWrites = new Set(['OUTCOME_UNKNOWN', 'PARTLY_DONE', 'STREAM_LOCKED', 'CONCURRENCY_CONFLICT']);
/** Whether the value is taken is judged elsewhere. */
const ofClaims = new Set(['COMMAND_REJECTED', 'UNIQUE_CHECK_UNAVAILABLE']);
/** After these, clients send an operation again. */
const undone = new Set(['DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN', 'STREAM_LOCKED', 'CONCURRENCY_CONFLICT']);

export const errorsAreTrue: Judge = {
  name: 'errors-are-true',
  promise:
    'clients get only errors that a fault explains, HISTORY_CHANGED only after a lost tail, and none that calls a written command not done',
  async differences({ answers, ledger }) {
    return answers.flatMap(({ client, asked, demanded, toldAt, response }) =>
      response.codes.flatMap((code) => {
        const where = `${client} (${asked.kind}${demanded ? ` at ${positionOf(demanded.text)}` : ''}) got ${code}`;
        // A stopping process refuses new requests.
        if (code === 'RATE_LIMITED' && response.message?.startsWith('This process is stopping.')) return [];
        if (asked.kind === 'claim' && ofClaims.has(code)) return [];
        if (!explained.has(code)) return [`${where}: ${response.message}`];
        if (ofWrites.has(code) && asked.kind !== 'write' && asked.kind !== 'claim')
          return [`${where}, but did not write`];
        if (undone.has(code) && (response.data?.move || response.data?.claim)) return [`${where}, but it was written`];
        if (code === 'HISTORY_CHANGED' && ledger.cuts.every(({ from }) => toldAt < from))
          return [`${where}, but no tail was lost`];
        return [];
      }),
    );
  },
};
