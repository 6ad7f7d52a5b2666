import { defineProjection, defineReactor, type Refold, t } from '../../src/index.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

/** Keeps debits of more than 1000 as dead letters. */
const strictV1 = defineProjection({
  name: 'strict',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), debits: t.integer() },
  key: (event) => event.streamId,
  history: true,
  onError: { policy: 'dead-letter' },
  evolve: {
    Debited: (row, event) => {
      if (Number(event.payload.amount) > 1000) throw new Error('too large');
      return { debits: (row?.debits ?? 0) + 1 };
    },
  },
});

const openingsV2 = defineProjection({
  name: 'openings',
  version: 2,
  events: account,
  table: { owner: t.text().primaryKey(), opened: t.integer(), note: t.text().nullable() },
  key: (event) => (event.type === 'Opened' ? [event.payload.owner, '*'] : []),
  activation: 'manual',
  evolve: { Opened: (row) => ({ opened: (row?.opened ?? 0) + 1, note: null }) },
});

const mails = defineReactor({ name: 'mails', events: account, handle: { Opened: async () => {} } });

/** An application in which every action of operators has something to act on. */
export const operated = { projections: [balanceV1, balanceV2, openingsV1, openingsV2, strictV1], reactors: [mails] };

/** Appends to the application, and waits until it has folded everything. */
export async function fillOperated({ log, status, reactors }: Refold): Promise<void> {
  for (const streamId of ['a', 'b'])
    await log.append({
      family: account,
      streamId,
      events: [
        { type: 'Opened', payload: { owner: streamId } },
        { type: 'Debited', payload: { amount: '5000' } },
        { type: 'Debited', payload: { amount: '1' } },
      ],
    });
  await until(async () => (await status()).every(({ state, lag }) => state !== 'building' && lag === 0n));
  await until(async () => (await reactors.status())[0]?.lag === 0n);
}

/** Everything that actions change. */
export async function operatedState(db: Database): Promise<unknown> {
  const tables = {
    projections: 'name, version, state, held_reason, paused_at, table_name, generation',
    rebuilds: 'name, version, form, dead_letters_accepted',
    canaries: 'name, version, percent',
    shadows: 'name, version, one_of, stopped_at',
    transitions: 'id',
    dead_letters: 'id, attempts',
    discards: 'name, position, recalled_at',
    table_snapshots: 'id',
    old_tables: 'table_name',
    reactors: 'name, paused, generation, checkpoint',
    reactor_versions: 'reactor, version',
    reactor_instances: 'reactor, position',
    reactor_operations: 'id',
  };
  const rows = Object.entries(tables).map(async ([table, columns]) => {
    const found = await db.query({
      text: `select ${columns} from refold.${table} order by 1, 2`.replace(
        /order by 1, 2$/,
        columns.includes(',') ? 'order by 1, 2' : 'order by 1',
      ),
    });
    return [table, found];
  });
  return Promise.all(rows);
}
