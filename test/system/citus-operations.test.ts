import { afterAll, expect, test } from 'vitest';
import { distributedThings } from '../refold/distributed-things.ts';
import {
  bothAnswers,
  expectNaiveResponses,
  expectNaiveResponsesOfRows,
  plain,
  startOperations,
} from '../refold/operations-setting.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { effort } from '../support/effort.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

// Read models of one partition are together on a worker, with either placement. Hundreds of operations may take minutes where the machine is busy.
test.each([
  'schema',
  'partition',
] as const)('operations over read models in a Citus cluster have the responses of one database, compiled and executed: %s', {
  timeout: 1_800_000,
}, async (placement) => {
  const store = { url: await cluster.createStore(placement), placement };
  const setting = await startOperations(store);
  await expectNaiveResponses(setting, Number(process.env.RUNS ?? effort(200, 30)));
  const ask = plain(
    '{ things(orderBy: [{ label: DESC }], first: 7) { totalCount nodes { thingId } pageInfo { endCursor } } }',
  );
  const [one, executed] = await bothAnswers(setting, ask);
  expect(one).toEqual(executed);
  expect(one.answer.data.things.nodes).toHaveLength(7);
  await setting.stop();
});

// As above.
test('operations over rows that are distributed over the workers have the responses of a naive evaluation, and those that follow relations are refused', {
  timeout: 1_800_000,
}, async () => {
  const store = { url: await cluster.createStore('partition'), placement: 'partition' } as const;
  const setting = await startOperations(store, distributedThings);
  const [held] = await cluster.run<{ workers: number }>(
    store.url,
    "select count(distinct nodename || nodeport)::int as workers from citus_shards where table_name = 'read_models.thing_v1'::regclass",
  );
  expect(held?.workers).toBe(2);
  const { answered, refused } = await expectNaiveResponsesOfRows(setting, Number(process.env.RUNS ?? effort(150, 30)));
  expect(answered).toBeGreaterThan(refused);
  expect(refused).toBeGreaterThan(0);
  await setting.stop();
});
