import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defineConfig, type GlobalPosition } from '../../../src/index.ts';
import { createCompletion } from '../../../src/runtime/processors/completion.ts';
import { createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { totalsBySql } from '../../support/account-totals.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let database: TestDatabase;
let runtime: Runtime;

beforeAll(async () => {
  database = await createTestDatabase();
  runtime = await startRuntime({
    config: defineConfig({ projections: [balanceV1, totalsBySql] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: false,
    logger: pino({ level: 'silent' }),
  });
});
afterAll(async () => {
  await runtime.stop();
  await database.drop();
});

test.each([
  ['evolve', balanceV1],
  ['evolveSql', totalsBySql],
] as const)('a build by %s that began with an outdated horizon is complete at the head that the log then had', async (_, projection) => {
  const { db, log } = runtime;
  const outdated = await appended(1);
  const head = await appended(300);
  const completed: GlobalPosition[] = [];
  const { name, version, sqlFold, filter } = projection;
  const options = {
    db,
    log,
    projection,
    claim: await claimProcessor(db, { kind: 'processor', name, version, partition: 0 }, 'test'),
    readSchema: 'read_models',
    state: 'building',
    freeze: true,
    logger: pino({ level: 'silent' }),
    onCaughtUp: async ({ goal }: { goal: GlobalPosition }) => {
      completed.push(goal);
      return 'active' as const;
    },
  } as const;
  const processor = sqlFold
    ? createSetBasedProcessor({ ...options, fold: sqlFold })
    : createProjectionProcessor(options);
  let after = options.claim.checkpoint;
  for (const horizon of [outdated, head]) {
    const page = await log.readAll({ after, upTo: horizon, filter, limit: 1000 });
    await processor.process({ ...page, after, horizon });
    after = page.upTo;
    expect(completed).toEqual(horizon === head ? [head] : []);
  }
});

test('a build that folds as fast as the log grows is complete, however many events are appended in a second', async () => {
  const completed = await foldWhileAppending({ appends: 300, pages: 2 });
  expect(completed).toEqual([false, true]);
});

test('a build that is more than two seconds behind is complete only within its activation lag', async () => {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 2_001));
  expect(await foldWhileAppending({ appends: 300, pages: 5 })).toEqual([false, false, false, false, false]);
  expect(await foldWhileAppending({ appends: 50, pages: 2 })).toEqual([false, true]);
  vi.restoreAllMocks();
});

/** Says of each page whether the build was complete with it. While a page is folded, events are appended. */
async function foldWhileAppending({ appends, pages }: { readonly appends: number; readonly pages: number }) {
  const { log } = runtime;
  const completion = createCompletion(balanceV1, log);
  const completed: boolean[] = [];
  for (let page = 0; page < pages; page++) {
    const upTo = await log.horizon();
    await appended(appends);
    completed.push((await completion.goal({ upTo })) !== undefined);
  }
  return completed;
}

async function appended(count: number): Promise<GlobalPosition> {
  const events = Array.from({ length: count }, () => ({ type: 'Credited', payload: { amount: '1.00' } }) as const);
  const opened = { type: 'Opened', payload: { owner: 'Ada' } } as const;
  const { position } = await runtime.log.append({
    family: account,
    streamId: crypto.randomUUID(),
    events: [opened, ...events],
  });
  return position;
}
