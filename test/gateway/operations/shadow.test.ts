import { SignJWT } from 'jose';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, jwt, type Refold, type Shadow, t } from '../../../src/index.ts';
import { account } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

// One application for all tests, each of which starts its own comparison.
let database: TestDatabase;
let refold: Refold;
const said: string[] = [];

const step = { actor: 'ann', reason: 'test' };
const keys = 'a secret of at least thirty-two bytes';
const columns = { accountId: t.text().primaryKey(), owner: t.text().index(), movements: t.integer() };
/** Viewers see their own accounts. */
const access = { rows: (viewer: { readonly id: string | null }) => ({ owner: { eq: viewer.id ?? '' } }) };

const first = defineProjection({
  name: 'balance',
  version: 1,
  events: account,
  table: { ...columns, note: t.text() },
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, movements: 0, note: 'private' }),
    Credited: (row) => row && { ...row, movements: row.movements + 1 },
  },
  access,
});
/** Counts differently if the account is Bob's, and has no note. */
const second = defineProjection({
  name: 'balance',
  version: 2,
  events: account,
  table: columns,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, movements: 0 }),
    Credited: (row) => row && { ...row, movements: row.movements + (row.owner === 'bob' ? 2 : 1) },
  },
  access,
  activation: 'manual',
});

beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [first, second],
    auth: jwt({ keys, issuer: 'shop', audience: 'api' }),
    gateway: { port: 0 },
    database: { url: database.url },
  });
  const logger = pino({ level: 'trace' }, { write: (line: string) => void said.push(line) });
  refold = await createRefold(config, { logger });
  for (const [streamId, owner] of [
    ['a', 'ann'],
    ['b', 'bob'],
  ] as const)
    await refold.log.append({
      family: account,
      streamId,
      events: [
        { type: 'Opened', payload: { owner } },
        { type: 'Credited', payload: { amount: '1' } },
      ],
    });
  await until(async () =>
    (await refold.status()).every(
      ({ state, version, lag }) => lag === 0n && state === (version === 1 ? 'active' : 'ready'),
    ),
  );
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

async function ask(viewer: string, query: string) {
  const token = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(viewer)
    .setIssuer('shop')
    .setAudience('api')
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(keys));
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

/** Compares every query from now on; sends the query until a difference is found. */
async function compared(viewer: string, query: string): Promise<Shadow> {
  await refold.schemaEvolution.startShadow('balance', 2, { oneOf: 1 }, step);
  return until(async () => {
    expect((await ask(viewer, query)).errors).toBeUndefined();
    const [shadow] = await refold.schemaEvolution.shadows();
    return shadow && shadow.same + shadow.different + shadow.failed > 0 && shadow;
  });
}

const all = 'query Mine { balances { totalCount edges { cursor node { id accountId movements note } } } }';

test("differences in a ready version's responses are counted, with path and values", async () => {
  const { same, different, failed, examples } = await compared('bob', all);
  expect([same, different > 0, failed]).toEqual([0, true, 0]);
  expect(examples).toEqual([
    {
      operation: 'Mine',
      path: 'balances.edges[].node.movements',
      times: different,
      older: '1',
      newer: '2',
      position: expect.anything(),
      seenAt: expect.any(String),
    },
  ]);
  // Nor do logs hold clients' responses.
  expect(said.join('')).not.toContain('private');
});

test('the comparison applies the access rules of the viewer, to fields that both versions have', async () => {
  const { same, different, examples } = await compared('ann', all);
  expect([same > 0, different, examples]).toEqual([true, 0, []]);
});

test('a document that the version would refuse is reported', async () => {
  const { failed, examples } = await compared(
    'ann',
    '{ balances(where: { owner: { eq: "ann" } }) { edges { node { note } } } }',
  );
  expect(failed).toBeGreaterThan(0);
  expect(examples).toMatchObject([{ operation: '{ balances }', path: '', older: '"valid"' }]);
  expect(examples[0]?.newer).toMatch(/must have at least one field selected/);
});

test('only queries that are deterministic at a position, and read the active version, are compared', async () => {
  await compared('bob', 'query Before { balance(accountId: "b") { movements } }');
  await ask('bob', 'query Moment { _meta { projections { lag } } balances { edges { node { movements } } } }');
  await ask('bob', 'query Nothing { __typename }');
  // Later queries are compared later.
  const found = await until(async () => {
    await ask('bob', 'query After { balance(accountId: "b") { movements } }');
    const [shadow] = await refold.schemaEvolution.shadows();
    return shadow?.examples.some(({ operation }) => operation === 'After') && shadow;
  });
  expect(found.examples.map(({ operation }) => operation).toSorted()).toEqual(['After', 'Before']);
  expect(found.same).toBe(0);
});

test('a comparison can be stopped, and is possible only for a ready version', async () => {
  await refold.schemaEvolution.stopShadow('balance', 2, step);
  expect((await refold.schemaEvolution.shadows())[0]?.stoppedAt).not.toBeNull();
  await expect(refold.schemaEvolution.stopShadow('balance', 2, step)).rejects.toThrow(
    'balance@2 is not being compared.',
  );
  await expect(refold.schemaEvolution.startShadow('balance', 1, { oneOf: 1 }, step)).rejects.toThrow(
    'balance@1 is active; only a ready version can be compared.',
  );
  await expect(refold.schemaEvolution.startShadow('balance', 2, { oneOf: 0.5 }, step)).rejects.toThrow(/found 0\.5/);
});
