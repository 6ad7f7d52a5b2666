import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, t } from '../../src/index.ts';
import { runCliHere } from '../support/cli-here.ts';
import { account } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin, tokens } from './admin-under-test.ts';

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
const remote = (line: string) =>
  runCliHere([...line.split(' '), '--remote', admin.refold.url ?? ''], { REFOLD_REMOTE_TOKEN: tokens.all });
const lettersOf = async (filter: object = {}) => (await admin.data(list, { filter })).deadLetters.items;

test('the event that a version has stopped at is counted in groups, shows the rows that have its values, and is retried', async () => {
  const groups = `{ deadLetterGroups(by: [ERROR, EVENT, STREAM]) { items { error eventType streamId count waiting firstPosition } visited next } }`;
  expect((await admin.data(groups)).deadLetterGroups).toEqual({
    items: [
      {
        ...{ eventType: 'Opened', streamId: 'b', count: 1, waiting: 0, firstPosition: '2' },
        error: expect.stringContaining("its 'owner' is already taken by another row"),
      },
    ],
    visited: 1,
    next: null,
  });
  const { deadLetters } = await admin.data('{ deadLetters { items { takenBy } } }');
  expect(deadLetters.items).toEqual([{ takenBy: [['a']] }]);
  expect((await remote('dead-letters list owner@1')).stdout).toContain('Now its unique values are those of ["a"].');
  expect(await remote('dead-letters retry owner@1 --reason agreed')).toMatchObject({
    code: 0,
    stdout: 'owner@1: 0 folded, 0 discarded, 0 left. Its processor continues.\n',
  });
  await until(async () => (await admin.refold.status())[0]?.processor === 'stopped');
});

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

test('the event that a rebuild has stopped at is listed as well, and a discard lets the rebuild end', async () => {
  for (const line of ['dead-letters recall owner@1', 'rebuild owner@1 --detach'])
    expect(await remote(`${line} --reason agreed`)).toMatchObject({ code: 0 });
  await until(async () => (await lettersOf()).length > 0);
  expect(await lettersOf()).toMatchObject([{ id: 'owner@1:0', of: 'owner@1', position: '2', streamId: 'b' }]);
  expect((await admin.refold.status())[0]).toMatchObject({ processor: 'running', rebuild: { status: 'stopped' } });
  const { code } = await remote('dead-letters discard owner@1 --reason agreed');
  expect(code).toBe(0);
  await until(async () => (await admin.refold.status())[0]?.rebuild === null);
  expect(await lettersOf()).toEqual([]);
  const { data } = await admin.refold.graphql('{ owners { nodes { accountId } } }');
  expect(data).toEqual({ owners: { nodes: [{ accountId: 'a' }, { accountId: 'c' }] } });
});
