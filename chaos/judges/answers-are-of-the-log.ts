import type { Projection, RecordedEvent } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { rowText } from '../clients/row-text.ts';
import { type Answer, positionOf } from '../clients/told.ts';
import { balance, standing } from '../domain.ts';
import type { Judge } from './judge.ts';

/** Compares rows with the states that the log leads to, event by event. */
export const answersAreOfTheLog: Judge = {
  name: 'answers-are-of-the-log',
  promise: 'every row in a response equals the fold of the log at a position that is not before the demanded one',
  async differences({ answers, events, ledger }) {
    const ofAccounts = Map.groupBy(
      events.filter(({ family }) => family === 'account'),
      ({ streamId }) => streamId,
    );
    const readings = [
      { field: 'balance', projection: balance(1), columns: ['amount', 'movements', 'chain'] },
      { field: 'standing', projection: standing, columns: ['amount', 'chain'] },
    ];
    const histories = new Map<string, readonly State[]>();
    return answers.flatMap((answer) => {
      const { asked, askedAt, toldAt, response } = answer;
      if (asked.kind !== 'account' || response.codes.length > 0) return [];
      // A request during a cut may have read events that are lost by now.
      if (ledger.cuts.some(({ from, to }) => toldAt >= from && askedAt <= to)) return [];
      return readings.flatMap(({ field, projection, columns }) => {
        const id = `${field} ${asked.accountId}`;
        const states = histories.get(id) ?? history(projection, columns, ofAccounts.get(asked.accountId) ?? []);
        histories.set(id, states);
        const told = rowText(columns, response.data?.[field] as Row | null | undefined); // as selected
        const since = answer.demanded ? positionOf(answer.demanded.text) : 0n;
        return states.some(({ row, until }) => row === told && until > since)
          ? []
          : [difference(answer, id, told, states)];
      });
    });
  },
};

/** The state of a row between two events of its stream. */
interface State {
  readonly row: string;
  readonly from: bigint;
  /** The position of the event that ends it. */
  readonly until: bigint;
}

const forEver = 1n << 62n;

function history(
  projection: Projection,
  columns: readonly string[],
  events: readonly RecordedEvent[],
): readonly State[] {
  const states: State[] = [];
  let row: Row | null = null;
  let from = 0n;
  for (const event of events) {
    states.push({ row: encoded(projection, columns, row), from, until: event.position });
    for (const key of projection.keysOf(event)) row = projection.apply(row, event, key);
    from = event.position;
  }
  return [...states, { row: encoded(projection, columns, row), from, until: forEver }];
}

function encoded({ codec }: Projection, columns: readonly string[], row: Row | null): string {
  return rowText(columns, row && codec.encode(row));
}

function difference({ client, demanded }: Answer, id: string, told: string, states: readonly State[]): string {
  const then = states.find(({ row }) => row === told);
  const where = `${client} got ${id}: ${told}`;
  return then
    ? `${where}, its state from ${then.from} to ${then.until}; the client demanded ${demanded?.text}`
    : `${where}, which was never its state; the last state is ${states.at(-1)?.row}`;
}
