import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, t } from '../../src/index.ts';
import { account } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin } from './admin-under-test.ts';

/** Stops at the second account of an owner. */
const owners = defineProjection({
  name: 'owner',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), owner: t.text().unique() },
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
});

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await startAdmin({ projections: [owners] });
  for (const [streamId, owner] of [
    ['a', 'Ada'],
    ['b', 'Ada'],
    ['c', 'Cleo'],
  ] as const)
    await admin.refold.log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner } }] });
  await until(async () => (await admin.refold.status())[0]?.processor === 'stopped');
});
afterAll(() => admin.close());

const list = `query ($filter: DeadLetterFilter) {
  deadLetters(filter: $filter) { items { id of position eventType streamId key attempts error { message } } next }
}`;
const lettersOf = async (filter: object = {}) => (await admin.data(list, { filter })).deadLetters.items;

test('the event that a version has stopped at is listed like a dead letter, and a discard lets the version continue', async () => {
  const listed = await lettersOf();
  expect(listed).toEqual([
    {
      ...{ id: 'owner@1:0', of: 'owner@1', position: '2', eventType: 'Opened', streamId: 'b', key: null, attempts: 1 },
      error: { message: expect.stringContaining("its 'owner' is already taken by another row") },
    },
  ]);
  expect(await lettersOf({ of: 'owner@1', eventType: 'Opened', failed: true })).toEqual(listed);
  expect(await lettersOf({ failed: false })).toEqual([]);
  const { deadLetter } = await admin.data('{ deadLetter(id: "owner@1:0") { position blocked { value } } }');
  expect(deadLetter).toEqual({ position: '2', blocked: { value: 0 } });
  const action = { discardDeadLetters: { ids: ['owner@1:0'] } };
  const { preview } = await admin.data(
    'query ($action: ActionInput!) { preview(action: $action) { refusal digest concerns { value } } }',
    { action },
  );
  expect(preview).toMatchObject({ refusal: null, concerns: { value: 1 } });
  const { run } = await admin.data(
    `mutation ($action: ActionInput!, $digest: String!) {
      run(action: $action, digest: $digest, reason: "a second account") { summary discarded }
    }`,
    { action, digest: preview.digest },
  );
  expect(run).toEqual({
    summary: '1 dead letters discarded, 0 left. A processor that had stopped continues.',
    discarded: 1,
  });
  await until(async () => (await admin.refold.status())[0]?.lag === 0n);
  expect(await lettersOf()).toEqual([]);
  const { data } = await admin.refold.graphql('{ owners { nodes { accountId } } }');
  expect(data).toEqual({ owners: { nodes: [{ accountId: 'a' }, { accountId: 'c' }] } });
});
