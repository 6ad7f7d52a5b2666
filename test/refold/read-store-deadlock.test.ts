import { expect, test } from 'vitest';
import type { Queryable } from '../../src/store/statements/statement.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { active, caughtUp, inStore, open, storeSetting } from '../support/store-setting.ts';
import { until } from '../support/until.ts';

const setting = storeSetting();

test('a batch that the server of a store ends because of a deadlock is repeated, and leaves no dead letter', async () => {
  const app = await setting.start({ projections: [inStore(balanceV1)] });
  await active(app, 'balance@1');
  await open(app, 'a', 'b');
  await caughtUp(app, 'balance@1');
  const lock = (tx: Queryable, id: string) =>
    tx.query({ text: 'select from read_models.balance_v1 where account_id = $1 for update', values: [id] });
  const count = async (text: string) => Number((await setting.store.query<{ n: bigint }>({ text }))[0]?.n);

  await setting.store.transaction(async (tx) => {
    // Of two sessions that wait for each other, the first to look is ended. This one never looks.
    await tx.query({ text: "set local deadlock_timeout = '1h'" });
    await lock(tx, 'b');
    const events = [{ type: 'Credited', payload: { amount: '1' } } as const];
    await app.log.appendToStreams({
      streams: ['a', 'b'].map((streamId) => ({ family: account, streamId, events })),
    });
    await until(() => count('select count(*) as n from pg_locks where not granted'));
    await lock(tx, 'a');
  });
  await caughtUp(app, 'balance@1');
  await until(() => count('select deadlocks as n from pg_stat_database where datname = current_database()'));
  expect(await storedTable(setting.store, balanceV1)).toEqual(await foldedTable(app.log, balanceV1));
  expect(await count('select count(*) as n from refold.dead_letters')).toBe(0);
});
