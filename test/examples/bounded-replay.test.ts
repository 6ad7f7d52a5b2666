import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { warehouse } from '../../examples/bounded-replay/events.ts';
import { stockLevel } from '../../examples/bounded-replay/stock-level.ts';
import { stockLevelWithBug } from '../../examples/bounded-replay/stock-level-with-bug.ts';
import { defineConfig, globalPosition, type Projection } from '../../src/index.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { listSnapshots } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { readAllRebuilds } from '../../src/store/registry/rebuilds.ts';
import { lastReason } from '../../src/store/registry/transitions.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let running: Runtime | undefined;
const warnings: string[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await running?.stop();
  await database.drop();
});

async function deploy(projection: Projection): Promise<Runtime> {
  await running?.stop();
  running = await startRuntime({
    config: defineConfig({ projections: [projection] }),
    url: database.url,
    owner: 'warehouse',
    development: false,
    maintain: true,
    logger: pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) }),
  });
  return running;
}

/** Receipts and shipments of several pieces, one after another. */
async function work(runtime: Runtime, events: number): Promise<void> {
  for (let n = 0; n < events; n++) {
    const payload = { sku: `sku-${n % 7}`, quantity: 2 + (n % 5) };
    const type = n % 3 === 2 ? 'StockShipped' : 'StockReceived';
    await runtime.log.append({ family: warehouse, streamId: 'hall', events: [{ type, payload }] });
  }
  const horizon = await runtime.log.horizon();
  await until(async () => (await runtime.status()).every(({ position }) => position >= horizon));
}

async function isRight(runtime: Runtime): Promise<boolean> {
  await runtime.versions.refresh();
  const stored = await storedTable(runtime.db, runtime.versions.stored(stockLevel));
  const folded = await foldedTable(runtime.log, stockLevel);
  return JSON.stringify([...stored].sort()) === JSON.stringify([...folded].sort());
}

test('a deployed bug is fixed by folding the events since then, and no others', async () => {
  const before = await deploy(stockLevel);
  const snapshots = async () =>
    (await listSnapshots(before.db)).map(({ id, checkpoint }) => `${id} at ${checkpoint}`).join(', ');
  for (const kept of ['1 at 100', '2 at 200, 1 at 100', '3 at 300, 2 at 200']) {
    await work(before, 100);
    await until(async () => (await snapshots()) === kept);
  }
  expect(await isRight(before)).toBe(true);

  const broken = await deploy(stockLevelWithBug);
  const edited = 'the code of its key or evolve is not the code that built its rows';
  expect(warnings).toContainEqual(expect.stringContaining(edited));
  await work(broken, 40);
  expect(await isRight(broken)).toBe(false);

  const mended = await deploy(stockLevel);
  expect(await isRight(mended)).toBe(false);
  const step = { actor: 'ann', reason: 'shipped quantities were ignored' };
  const from = { log: mended.log, snapshot: { upTo: globalPosition(300n) } };
  await requestRebuild(mended.db, stockLevel, 'read_models', step, from);
  await until(async () => (await readAllRebuilds(mended.db)).length === 0);
  const outcome = await lastReason(mended.db, 'stock_level', 1);
  expect(outcome).toBe('rebuilt up to position 340 from snapshot 3 at position 300, 40 events folded');
  expect(await isRight(mended)).toBe(true);

  await requestRebuild(mended.db, stockLevel, 'read_models', step);
  await until(async () => (await readAllRebuilds(mended.db)).length === 0);
  expect(await lastReason(mended.db, 'stock_level', 1)).toBe('rebuilt up to position 340, 340 events folded');

  const page = await readFile('docs/rebuilding.md', 'utf8');
  expect(page).toContain(`# stock_level@1: ${outcome}.`);
});

test('the code of the page is the code of the example', async () => {
  const page = await readFile('docs/rebuilding.md', 'utf8');
  const sources = await Promise.all(
    ['stock-level.ts', 'stock-level-with-bug.ts'].map((file) => readFile(`examples/bounded-replay/${file}`, 'utf8')),
  );
  const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code ?? '');
  expect(sources.map((source) => blocks.filter((block) => source.includes(block)).length)).toEqual([1, 1]);
});
