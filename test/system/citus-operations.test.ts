import { afterAll, expect, test } from 'vitest';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { bothAnswers, expectNaiveResponses, plain, startOperations } from '../refold/operations-setting.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { effort } from '../support/effort.ts';

const cluster = await startCitusCluster();
const store = { url: await cluster.createDatabase(), placement: 'schema' } as const;
await migrateStore(store);
const setting = await startOperations(store);
afterAll(async () => {
  await setting.stop();
  await cluster.stop();
});

// Hundreds of operations may take minutes where the machine is busy.
test(
  'operations over read models in a Citus cluster have the responses of one database, compiled and executed',
  {
    timeout: 1_800_000,
  },
  () => expectNaiveResponses(setting, Number(process.env.RUNS ?? effort(400, 60))),
);

test('pages of a list follow each other', async () => {
  const ask = plain(
    '{ things(orderBy: [{ label: DESC }], first: 7) { totalCount nodes { thingId } pageInfo { endCursor } } }',
  );
  const [one, executed] = await bothAnswers(setting, ask);
  expect(one).toEqual(executed);
  expect(one.answer.data.things.nodes).toHaveLength(7);
});
