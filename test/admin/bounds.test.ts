import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig } from '../../src/index.ts';
import { createActions } from '../../src/runtime/actions/actions.ts';
import { createSchemaEvolution } from '../../src/runtime/activation/schema-evolution.ts';
import { readAuditPage } from '../../src/runtime/inspection/audit-log.ts';
import { readEventPage } from '../../src/runtime/inspection/events.ts';
import { blockedBehind, readLetterGroups, readLetterPage } from '../../src/runtime/inspection/letters.ts';
import { createOverviewReader } from '../../src/runtime/inspection/overview.ts';
import { startRuntime } from '../../src/runtime/runtime.ts';
import { createStoreFinder } from '../../src/runtime/stores/steps-of-stores.ts';
import { createLifecycle } from '../../src/runtime/versions/lifecycle.ts';
import { readLagTrend, readRuns } from '../../src/store/browsing/browse-runs.ts';
import { readTableFacts } from '../../src/store/browsing/table-facts.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { noNotifications } from '../../src/store/postgres/notifications.ts';
import { countDeadLetters } from '../../src/store/processors/dead-letters.ts';
import { readStores } from '../../src/store/read-store.ts';
import type { Statement } from '../../src/store/statements/statement.ts';
import { effort } from '../support/effort.ts';
import { account, talliesOf } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

const versions = talliesOf(200);
const letters = effort(1_000_000, 100_000);
const events = 60_000;

let database: TestDatabase;
let db: Database;
const config = defineConfig({ events: [account], projections: versions });

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

let plans: { readonly statement: Statement; readonly plan: PlanNode }[] = [];

/** Also executes each statement for its plan. */
function explaining(target: Database): Database {
  return {
    ...target,
    async query<Row extends object>(statement: Statement) {
      const [row] = await target.query<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>({
        text: `explain (analyze, timing off, format json) ${statement.text}`,
        values: statement.values ?? [],
      });
      const plan = row?.['QUERY PLAN'][0]?.Plan;
      if (plan) plans.push({ statement, plan });
      return target.query<Row>(statement);
    },
  };
}

/** Rows of these tables that a plan has visited. */
function visits(node: PlanNode, tables: readonly string[]): number {
  const below = (node.Plans ?? []).reduce((sum, plan) => sum + visits(plan, tables), 0);
  if (!tables.includes(node['Relation Name'] ?? '')) return below;
  return below + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
}

beforeAll(async () => {
  database = await createTestDatabase();
  // Registers the versions, and maintains nothing.
  const runtime = await startRuntime({
    ...{
      config,
      url: database.url,
      owner: 'test',
      development: false,
      maintain: false,
      logger: pino({ level: 'silent' }),
    },
  });
  await runtime.stop();
  db = createDatabase({ url: database.url });
  await db.query({
    text: `
      insert into refold.events (stream_position, family, stream_id, type, payload)
      select number, 'account', 'long', 'Credited', '{"amount": "1"}'
      from generate_series(1, ${events}) as number`,
  });
  await db.query({
    text: `insert into refold.streams (family, stream_id, version) values ('account', 'long', ${events})`,
  });
  await db.query({
    text: `
      insert into refold.dead_letters (name, version, table_name, key, position, event_type, stream_id, error)
      select
        'tally_7', 1, 'tally_7_v1', jsonb_build_array('row ' || number / 5000), number % ${events} + 1, 'Credited', 'long',
        case when number % 100 = 0 then json_build_object('message', 'failed for reason ' || number % 3)::jsonb end
      from generate_series(1, ${letters}) as number`,
  });
  await db.query({
    text: `
      insert into refold.processes (id, name, role, versions, declares, owns, keeps)
      select gen_random_uuid(), 'worker-' || number, 'worker', versions, units, '{}', '{}'
      from generate_series(1, 50) as number
      cross join (
        select array_agg('tally_' || version || '@1') as versions, array_agg('processor tally_' || version || '@1/0') as units
        from generate_series(1, 200) as version
      ) as declared`,
  });
  await db.query({
    text: `
      insert into refold.transitions (name, version, from_state, to_state, actor, reason)
      select 'tally_' || number % 200 + 1, 1, 'ready', 'ready', 'somebody', 'test' from generate_series(1, 60000) as number`,
  });
  for (const table of ['events', 'dead_letters', 'transitions'])
    await database.administer(`vacuum analyze refold.${table}`);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

test('with 200 versions, 50 processes and many dead letters, no statement visits more than its bound', async () => {
  const own = explaining(db);
  const log = createEventLog(own, config.families);
  const application = {
    ...storesOf(own),
    log,
    config,
    schemaEvolution: createSchemaEvolution({ db: own, dbOf: async () => own, declarations: config }),
  };
  const actions = createActions({
    ...application,
    lifecycle: createLifecycle(own, config.database.readSchema, config),
  });
  const long = { of: 'tally_7@1' };
  const reads: Record<string, () => Promise<unknown>> = {
    overview: () => createOverviewReader(application).read(),
    letters: () => readLetterPage(application, {}, 50, null),
    rareLetters: () => readLetterPage(application, { eventType: 'Opened' }, 50, null),
    lettersInTheMiddle: () =>
      readLetterPage(application, { ...long, failed: true }, 50, { of: 'tally_7@1', after: BigInt(letters / 2) }),
    groups: () => readLetterGroups(application, {}, ['error', 'event', 'stream', 'of'], null),
    blocked: async () => {
      const {
        letters: [first],
      } = await readLetterPage(application, {}, 1, null);
      if (first) await blockedBehind(first);
    },
    events: () => readEventPage(application, {}, 'newestFirst', 50, null),
    rareEvents: () => readEventPage(application, { types: ['account.Debited'] }, 'oldestFirst', 50, null),
    audit: () => readAuditPage(application, {}, 50, null),
    auditOfNobody: () => readAuditPage(application, { actor: 'nobody' }, 50, null),
    runs: () => readRuns(own, { name: 'tally_7', version: 1, before: null, limit: 50 }),
    trend: () => readLagTrend(own, { name: 'tally_7', version: 1, minutes: 30, points: 30 }),
    table: () => readTableFacts(own, 'tally_7', 1),
    previewOfAll: () => actions.preview({ name: 'discardDeadLetters', input: { filter: long } }),
  };
  for (const [name, read] of Object.entries(reads)) {
    plans = [];
    await read();
    expect([name, plans.length > 0]).toEqual([name, true]);
    for (const { statement, plan } of plans) {
      const found = {
        name,
        text: statement.text.slice(0, 200),
        letters: visits(plan, ['dead_letters', 'reactor_letters']),
        log: visits(plan, ['events', 'transitions']),
        control: visits(plan, ['projections', 'processors', 'processes']),
      };
      // Letters: a window and the look ahead for the next one; 200 versions count up to 1001 each. Log: the sample that finds its types. A version or
      // process is visited a few times, never once for each other one.
      const bounded = found.letters <= 12_000 && found.log <= 32_000 && found.control <= 3000;
      expect(bounded ? 'bounded' : found).toBe('bounded');
    }
  }
});

test('the status of 200 versions counts many dead letters once, not once for each version', async () => {
  plans = [];
  expect(await countDeadLetters(explaining(db))).toEqual([{ name: 'tally_7', version: 1, letters }]);
  const [counted] = plans;
  expect(counted && visits(counted.plan, ['dead_letters'])).toBeLessThanOrEqual(letters);
});

/** An application whose only store is the database of the log. */
function storesOf(one: Database) {
  const stores = readStores({ name: 'default', url: one.url, db: one, reads: one, notifications: noNotifications }, []);
  return { db: one, stores, find: createStoreFinder(stores, config) };
}

test('all dead letters are found page by page, although a page may end before it is full', async () => {
  const {
    letters: [first],
    next,
  } = await readLetterPage(storesOf(db), {}, 1, null);
  expect(first?.source).toMatchObject({ of: 'tally_7@1', isReactor: false });
  expect(next).not.toBeNull();
  let visited = 0;
  for (let after: Parameters<typeof readLetterGroups>[3] = null; ; ) {
    const page: Awaited<ReturnType<typeof readLetterGroups>> = await readLetterGroups(
      storesOf(db),
      { failed: true },
      ['error'],
      after,
    );
    visited += page.visited;
    after = page.next;
    if (after === null) break;
  }
  expect(visited).toBe(letters);
});
