import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { beginning, defineConfig, globalPosition } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { totalsBySql } from '../../support/account-totals.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let database: TestDatabase;
let runtime: Runtime;

beforeEach(async () => {
  database = await createTestDatabase();
  runtime = await startRuntime({
    config: defineConfig({ projections: [totalsBySql] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: false,
    logger: pino({ level: 'silent' }),
  });
});
afterEach(async () => {
  await runtime.stop();
  await database.drop();
});

async function owned() {
  const { db, log } = runtime;
  const { name, version } = totalsBySql;
  const claim = await claimProcessor(db, { kind: 'processor', name, version, partition: 0 }, 'test');
  return createSetBasedProcessor({
    db,
    log,
    claim,
    readSchema: 'read_models',
    projection: totalsBySql,
    fold: totalsBySql.sqlFold ?? expect.unreachable(),
    state: 'active',
    freeze: false,
    logger: pino({ level: 'silent' }),
    onCaughtUp: async () => 'active',
  });
}

const checkpoint = async () => (await readRegistry(runtime.db))[0]?.checkpoint;

/** A log of a million positions without any event. */
const page = { after: beginning, upTo: globalPosition(1_000_000n), horizon: globalPosition(1_000_000n), events: [] };

test('an interrupted page of many batches ends with the current batch, and another owner continues from there', async () => {
  const processor = await owned();
  const processed = processor.process(page);
  processor.interrupt?.();
  expect(await processed).toBe('stop');
  expect(await checkpoint()).toBe(5_000n);
  const heir = await owned();
  expect(heir.checkpoint).toBe(5_000n);
  expect(await heir.process({ ...page, upTo: globalPosition(12_000n), horizon: globalPosition(12_000n) })).toBe(
    'continue',
  );
  expect(await checkpoint()).toBe(12_000n);
});

test('a former owner writes nothing, and a page that was delivered twice is folded once', async () => {
  const former = await owned();
  await owned();
  await expect(former.process(page)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  const processor = await owned();
  const short = { ...page, upTo: globalPosition(10n), horizon: globalPosition(10n) };
  expect(await processor.process(short)).toBe('continue');
  expect(await processor.process(short)).toBe('continue');
  expect(await checkpoint()).toBe(10n);
});
