import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import { createReplica, type Replica } from '../../../src/runtime/reads/replica.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { active, versionMap } from '../../schema/in-memory-services.ts';
import { balanceV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

let replica: Replica | undefined;
afterEach(() => replica?.close());

const served = versionMap([active(balanceV1)]);
const registered = { name: 'balance', version: 1, state: 'active', tableName: 'balance_v1' };
const primaryPlace = { system: '7', timeline: 2, at: '1000', anchor: 'a1' };
const replicaState = { ...primaryPlace, position: 10n, standby: true, versions: [registered] };

/** A replica of two servers with these responses, after it has polled both of them three times. */
async function looked(state: object, place: object = primaryPlace, maxLag = 600_000): Promise<Replica> {
  let looks = 0;
  const answering = (row: object): Queryable => ({
    async query<Row extends object>() {
      looks++;
      return [row as Row]; // what the statements of the poll select
    },
  });
  const watch = { ...answering(state), close: async () => {} } as unknown as Database; // nothing else of it is used
  const logger = pino({ level: 'silent' });
  replica = createReplica({ primary: answering(place), db: watch, watch, maxLag, logger });
  await until(() => looks >= 6);
  return replica;
}

test('reads go to a standby that has replayed the primary’s position', async () => {
  expect((await looked(replicaState)).accepts(served)).toBe(true);
});

test.each([
  ['was promoted', { standby: false, at: null }],
  ['belongs to another server', { system: '8' }],
  ['follows another timeline', { timeline: 3 }],
  ['has not replayed enough', { at: '999' }],
  ['has another event at its last position', { anchor: 'b2' }],
  ['does not know the version', { versions: null }],
  ['has the version in another table', { versions: [{ ...registered, tableName: 'balance_v1_g2' }] }],
  ['knows the version as building', { versions: [{ ...registered, state: 'building' }] }],
])('no reads go to a standby that %s', async (_, difference) => {
  expect((await looked({ ...replicaState, ...difference }, primaryPlace, 100)).accepts(served)).toBe(false);
});

test('a standby that fails a read is avoided, unless the read would fail on the primary as well', async () => {
  const { accepts, blame } = await looked(replicaState);
  const failure = (sqlState: string) => new RefoldError('DATABASE_ERROR', 'failed', { sqlState });
  expect(blame(failure('57014'))).toBe(false); // it took too long
  expect(blame(new RefoldError('BAD_USER_INPUT', 'no'))).toBe(false);
  expect(accepts(served)).toBe(true);
  expect(blame(failure('40001'))).toBe(true); // it conflicts with the replay
  expect(accepts(served)).toBe(false);
  await until(() => accepts(served));
});
