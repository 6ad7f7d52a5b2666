import { defineProjection, t } from '../../src/index.ts';
import { account, balanceTable } from './sample-domain.ts';

/** The balances of the sample domain, written with the append. */
export const inlineBalance = defineProjection({
  name: 'inline_balance',
  version: 1,
  events: account,
  mode: 'inline',
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
    Credited: (row, event) =>
      row && { ...row, amount: row.amount.plus(event.payload.amount), movements: row.movements + 1 },
    Debited: (row, event) =>
      row && { ...row, amount: row.amount.minus(event.payload.amount), movements: row.movements + 1 },
    Closed: () => null,
  },
});

/** A few rows that many streams feed. They reveal the order: each keeps the last position, and how often it was written. */
export const inlineOpenings = defineProjection({
  name: 'inline_openings',
  version: 1,
  events: account,
  mode: 'inline',
  table: { owner: t.text().primaryKey(), opened: t.integer(), digest: t.text() },
  key: (event) => (event.type === 'Opened' ? [event.payload.owner, '*'] : []),
  evolve: {
    Opened: (row, event) => ({
      opened: (row?.opened ?? 0) + 1,
      // Another order of the same events results in another text.
      digest: `${row?.digest ?? ''} ${event.position}`.slice(-60),
    }),
  },
});

/** The number of movements of each account. Its process kills itself in the middle of folding this event. */
export function countingMovements(killAt?: number) {
  let folded = 0;
  const counted = (row: { movements: number } | null) => {
    folded++;
    if (folded === killAt) process.kill(process.pid, 'SIGKILL');
    return { movements: (row?.movements ?? 0) + 1 };
  };
  return defineProjection({
    name: 'inline_movements',
    version: 1,
    events: account,
    mode: 'inline',
    codeVersion: 1,
    table: { accountId: t.text().primaryKey(), movements: t.integer() },
    key: (event) => event.streamId,
    evolve: { Credited: (row) => counted(row) },
  });
}
