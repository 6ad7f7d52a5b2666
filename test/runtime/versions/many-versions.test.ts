import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { registerVersions } from '../../../src/runtime/registration/register-versions.ts';
import { holdForUndeclaredEvents } from '../../../src/runtime/versions/undeclared-events.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { account, balanceV1, openingsV1, talliesOf } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

describe.each(['empty', 'filled'] as const)('with a log that is %s', (log) => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ url: database.url });
    if (log === 'empty') return;
    const events = [{ type: 'Opened', payload: { owner: 'Ann', limit: '0' } } as const];
    await createEventLog(db, [account]).append({ family: account, streamId: 'a', events });
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  async function statementsOf(projections: readonly Projection[]): Promise<number> {
    const before = db.counts.statements;
    await registerVersions({
      db,
      readSchema: 'read_models',
      declarations: defineConfig({ projections }),
      actor: 'test',
      development: false,
    });
    return db.counts.statements - before;
  }

  test('fifty new versions are registered with as many statements as five, and so are known ones', async () => {
    await statementsOf(talliesOf(5)); // so both counts are of new versions beside known ones
    const few = await statementsOf(talliesOf(10));
    const known = await statementsOf(talliesOf(10));
    expect(await statementsOf(talliesOf(60))).toBe(few);
    expect(await statementsOf(talliesOf(60))).toBe(known);
    const states = new Set((await readRegistry(db)).map(({ state }) => state));
    expect(states).toEqual(new Set([log === 'empty' ? 'active' : 'building']));
    const views = await db.query({ text: `select from pg_views where schemaname = 'read_models'` });
    expect(views).toHaveLength(log === 'empty' ? 60 : 0);
  });
});

test('a process that claims many units reads the registry and the catalog once for all of them', async () => {
  const statementsUntilOwned = async (count: number) => {
    const setting = await createRuntimeSetting();
    const runtime = await setting.start(defineConfig({ projections: talliesOf(count) }));
    // Asked over another connection, so it does not count.
    const asked = createDatabase({ url: setting.database.url, maxConnections: 1 });
    await until(async () => (await readRegistry(asked)).every(({ status }) => status === 'running'));
    const { statements } = runtime.db.counts;
    await asked.close();
    await setting.close();
    return statements;
  };
  const few = await statementsUntilOwned(2);
  const many = await statementsUntilOwned(62);
  // One claim each. The rest is left for what a process sends in the meantime.
  expect(many - few).toBeLessThan(2 * 60);
});

test('versions that were declared together are compared with the log once', async () => {
  const setting = await createRuntimeSetting();
  const runtime = await setting.start(defineConfig({ projections: [balanceV1, openingsV1] }), { maintain: false });
  const sent: string[] = [];
  await runtime.db.transaction(async (tx) => {
    const counted: Queryable = {
      query(statement) {
        sent.push(statement.text);
        return tx.query(statement);
      },
    };
    for (const projection of [balanceV1, openingsV1])
      await holdForUndeclaredEvents(counted, projection, [...families], { actor: 'test', reason: 'test' });
    expect(sent.filter(readsTypes)).toHaveLength(2);
    sent.length = 0;
    for (const projection of [balanceV1, openingsV1])
      await holdForUndeclaredEvents(counted, projection, families, { actor: 'test', reason: 'test' });
  });
  await setting.close();
  expect(sent.filter(readsTypes)).toHaveLength(1);
});

const families = [account];

function readsTypes(text: string): boolean {
  return text.includes('with recursive families');
}
