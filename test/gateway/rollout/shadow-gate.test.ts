import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, type Refold, t } from '../../../src/index.ts';
import { checkStoredDeclarations } from '../../../src/runtime/activation/check-declarations.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { addShadowResult, readShadowStandings } from '../../../src/store/registry/shadows.ts';
import { account } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let db: Database;
let refold: Refold;
const said: string[] = [];

const shadow = { queries: 3, oneOf: 1 };
/** The third version counts differently if the account is Bob's. */
const balance = (version: number) =>
  defineProjection({
    name: 'balance',
    version,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text().index(), movements: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => ({ owner: event.payload.owner, movements: 0 }),
      Credited: (row) => row && { ...row, movements: row.movements + (version === 3 && row.owner === 'bob' ? 2 : 1) },
    },
    access: 'public',
    ...(version > 1 ? { activation: { shadow } } : {}),
  });
const [first, second, third] = [balance(1), balance(2), balance(3)];
const configOf = (projections: readonly (typeof first)[]) =>
  defineConfig({ projections, gateway: { port: 0 }, database: { url: database.url } });

beforeAll(async () => {
  database = await createTestDatabase();
  const before = await createRefold(configOf([first]), { logger: pino({ level: 'silent' }) });
  let last = 0n;
  for (const [streamId, owner] of [
    ['a', 'ann'],
    ['b', 'bob'],
  ] as const)
    last = (
      await before.log.append({
        family: account,
        streamId,
        events: [
          { type: 'Opened', payload: { owner } },
          { type: 'Credited', payload: { amount: '1' } },
        ],
      })
    ).position;
  await until(async () => (await before.status()).every(({ position }) => position >= last));
  await before.stop();
  const logger = pino({ level: 'warn' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  refold = await createRefold(configOf([first, second, third]), { logger });
  db = createDatabase({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await refold.stop();
  await database.drop();
});

async function ask(owner: string): Promise<void> {
  const query = `query Mine { balances(where: { owner: { eq: "${owner}" } }) { nodes { accountId movements } } }`;
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  expect((await response.json()).errors).toBeUndefined();
}

async function version(number: number) {
  return (await refold.status()).find((one) => one.version === number);
}

test('a version that waits for live queries is held, and says so in status, check and the log', async () => {
  const held = await until(async () => {
    const found = await version(2);
    return found?.state === 'ready' && found.heldReason;
  });
  expect(held).toBe(
    "Waiting for 3 compared live queries in the last 24 hours: 0 so far, of which 0 were answered differently. 'refold shadow balance@2' shows more, 'refold activate balance@2' activates it all the same.",
  );
  const findings = await checkStoredDeclarations(db, configOf([first, second, third]));
  expect(findings).toContainEqual({ kind: 'note', message: `balance@2 is held at ready: ${held}` });
  await until(() => said.includes(`balance@2 is held at ready: ${held}`));
});

test("only recent comparisons count, and only of the version's current rows", async () => {
  await until(async () => (await version(3))?.heldReason);
  const rolledBack = new Error('rolled back');
  const trying = db.transaction(async (tx) => {
    const [found] = (await refold.schemaEvolution.shadows()).filter((one) => one.version === 3);
    const result = { name: 'balance', version: 3, startedAt: String(found?.startedAt), operation: 'Mine' };
    const add = (outcome: 'same' | 'skipped') =>
      addShadowResult(tx, { ...result, outcome, position: null, differences: [] }, 50);
    const same = async () => (await readShadowStandings(tx)).find((one) => one.version === 3)?.same;
    await add('same');
    await add('same');
    await add('skipped');
    expect(await same()).toBe(2);
    await tx.query({ text: `update refold.shadow_counts set minute = minute - interval '25 hours'` });
    expect(await same()).toBe(0);
    await add('same');
    expect(await same()).toBe(1);
    await tx.query({ text: 'update refold.projections set generation = generation + 1 where version = 3' });
    expect(await same()).toBe(0);
    throw rolledBack;
  });
  await expect(trying).rejects.toBe(rolledBack);
});

test('a version becomes active when enough live queries agree, and is held if they differ', async () => {
  await until(async () => {
    await ask('bob');
    return (await version(2))?.state === 'active' && (await version(3))?.heldReason?.startsWith('Of ');
  });
  const third = await version(3);
  expect(third?.state).toBe('ready');
  expect(third?.heldReason).toMatch(
    /^Of (\d+) live queries compared in the last 24 hours, \1 were answered differently \(last: Mine, at balances\.nodes\[\]\.movements\): 100 %, and at most 0 % may be\./,
  );
  const [{ reason } = { reason: '' }] = await db.query<{ reason: string }>({
    text: `select reason from refold.transitions where version = 2 and to_state = 'active'`,
  });
  expect(reason).toMatch(/^caught up, of \d+ live queries compared 0 were answered differently/);

  // A new comparison forgets earlier differences; no query selects the differing rows now.
  await refold.schemaEvolution.startShadow('balance', 3, { oneOf: 1 }, { actor: 'ann', reason: 'mended' });
  await until(async () => {
    await ask('ann');
    return (await version(3))?.state === 'active';
  });
});
