import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig, type GlobalPosition } from '../../../src/index.ts';
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
