import { expect, test } from 'vitest';
import type { Refold } from '../../src/index.ts';
import { beginMove } from '../../src/runtime/moves/begin-move.ts';
import { openStores } from '../../src/runtime/stores/open-stores.ts';
import { readVersion } from '../../src/store/registry/registry.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { caughtUp, storeSetting } from '../support/store-setting.ts';
import { until } from '../support/until.ts';
import { operated } from './operated-application.ts';

const setting = storeSetting();
const adminToken = 'token-of-ada-who-may-do-all';
const strictV1 = operated.projections.find(({ id }) => id === 'strict@1') ?? expect.unreachable();
const projections = [balanceV1, strictV1];
const step = { actor: 'test', reason: 'to see' };

async function ask({ url }: Refold, query: string, variables = {}) {
  const response = await fetch(`${url}/admin/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${adminToken}` },
    body: JSON.stringify({ query, variables }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  const { data, errors } = (await response.json()) as { data: any; errors?: unknown };
  expect(errors).toBeUndefined();
  return data;
}

const preview = (app: Refold, action: object) =>
  ask(app, 'query ($action: ActionInput!) { preview(action: $action) { refusal digest } }', { action }).then(
    (data) => data.preview as { refusal: string | null; digest: string | null },
  );

async function requestMove(): Promise<void> {
  const databases = openStores(setting.configOf({ projections }), setting.log.url);
  const { home, apart } = databases.stores;
  const [to = expect.unreachable()] = apart;
  const moving = projections.map((projection) => ({ projection, from: home }));
  await beginMove(moving, { to, readSchema: 'read_models', step });
  await databases.close();
}

test('of a version that moves, the copy that answers is shown and operated, and the other one is named', async () => {
  const before = await setting.start({ projections });
  const debited = (amount: string) => ({ type: 'Debited' as const, payload: { amount } });
  const opened = { type: 'Opened' as const, payload: { owner: 'ada' } };
  await before.log.append({ family: account, streamId: 'a', events: [opened, debited('5000'), debited('1')] });
  for (const { id } of projections) await caughtUp(before, id);
  await before.stop();

  // Nobody builds the copies yet.
  const gateway = await setting.start({ projections, adminToken, role: 'gateway' });
  await requestMove();
  const shown = '{ version(id: "balance@1") { store state copies { store isArriving position } } }';
  const { version } = await until(async () => {
    const data = await ask(gateway, shown);
    return data.version.copies.length > 0 && data;
  });
  expect(version).toEqual({
    store: 'default',
    state: 'ACTIVE',
    copies: [{ store: 'analytics', isArriving: true, position: '0' }],
  });
  expect((await preview(gateway, { rollback: { projection: 'balance' } })).refusal).toContain(
    'only balance@1 is active',
  );

  await setting.start({ projections });
  await until(async () => (await ask(gateway, shown)).version.store === 'analytics');
  expect((await ask(gateway, shown)).version).toMatchObject({
    state: 'ACTIVE',
    copies: [{ store: 'default', isArriving: false }],
  });
  // Both copies have them.
  const { deadLetters } = await ask(gateway, '{ deadLetters { items { of position } } }');
  expect(deadLetters.items).toEqual([
    { of: 'strict@1', position: '2' },
    { of: 'strict@1', position: '3' },
  ]);
  const both = await ask(gateway, '{ version(id: "balance@1") { history { items { store } } } }');
  expect(new Set(both.version.history.items.map(({ store }: { store: string }) => store))).toEqual(
    new Set(['default', 'analytics']),
  );

  expect((await preview(gateway, { rollback: { projection: 'balance' } })).refusal).toContain(
    'only balance@1 is active',
  );
  expect((await preview(gateway, { retire: { version: 'balance@1' } })).refusal).toContain(
    "nothing would answer for 'balance' any more",
  );
  const action = { pause: { version: 'balance@1' } };
  const { digest } = await preview(gateway, action);
  await ask(
    gateway,
    'mutation ($action: ActionInput!, $digest: String!) { run(action: $action, digest: $digest, reason: "to see") { summary } }',
    { action, digest },
  );
  expect((await readVersion(setting.store, balanceV1))?.paused).toMatchObject({ by: 'ada' });
});
