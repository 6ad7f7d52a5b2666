import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import retail from '../../examples/online-retail/app.ts';
import { generateSales } from '../../examples/online-retail/generated-sales.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { runCli, startCli } from '../support/cli.ts';
import { linesToRead } from '../support/effort.ts';
import { realFiles } from '../support/real-files.ts';
import { differencesFromOracle } from '../support/retail-comparison.ts';
import { firstLinesOf, linesOf } from '../support/retail-file.ts';
import { computeRetailOracle } from '../support/retail-oracle.ts';
import type { StoreServer } from '../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const examples = join(import.meta.dirname, '../../examples');
let folder: string;
let log: TestDatabase;
let server: StoreServer;
let store: Database;
let env: Record<string, string>;

/**
 * The examples with their read models in another server than the log, whatever kind of server that is: nothing of them is edited. Called at the top
 * of a file.
 *
 * @param startStore starts a store for each test
 * @param partitions of each read model of the sales, if not one
 */
export function examplesApart(startStore: () => Promise<StoreServer>, partitions?: number): void {
  around(startStore);
  testShop();
  testSales(partitions);
}

function around(startStore: () => Promise<StoreServer>): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'refold-apart-'));
  });
  beforeEach(async () => {
    log = await createTestDatabase();
    server = await startStore();
    store = createDatabase({ url: server.url });
    const { url, placement } = server;
    env = {
      DATABASE_URL: log.url,
      REFOLD_READ_STORES: JSON.stringify({ reads: { url, ...(placement ? { placement } : {}) } }),
      REFOLD_STORE: 'reads',
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
    };
    return async () => {
      await store.close();
      await server.stop();
      await log.drop();
    };
  });
  afterAll(() => rm(folder, { recursive: true }));
}

/** Nothing of a read model is in the database of the log. */
async function expectAllApart(projections: readonly Projection[]): Promise<void> {
  const home = createDatabase({ url: log.url });
  expect(await readRegistry(home)).toEqual([]);
  await home.close();
  const ids = (await readRegistry(store)).map(({ name, version }) => `${name}@${version}`);
  expect(ids).toEqual(projections.map(({ id }) => id).toSorted());
}

function testShop(): void {
  test('the shop answers, and a mutation reads its own write', async () => {
    const config = join(examples, 'shopping-cart/app.ts');
    const { default: shop } = await import('../../examples/shopping-cart/app.ts');
    const process = startCli(['start', '--config', config], { env });
    const url = await process.url();
    const ask = async (query: string) => {
      const headers = { 'content-type': 'application/json' };
      return (await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })).json();
    };
    const customer =
      'registerCustomer(input: { customerId: "c1", profile: { name: "Ada", email: "ada@example.com" } })';
    await until(async () => JSON.stringify(await ask('{ customerProfiles { totalCount } }')).includes('0'));
    expect(await ask(`mutation { ${customer} { customerProfile { name } } }`)).toEqual({
      data: { registerCustomer: { customerProfile: { name: 'Ada' } } },
    });
    expect(await ask('{ customerProfiles { nodes { name } } }')).toEqual({
      data: { customerProfiles: { nodes: [{ name: 'Ada' }] } },
    });
    await expectAllApart(shop.projections);
    await process.end('SIGTERM');
  });
}

async function expectExactReadModels(lines: AsyncIterable<string> | Iterable<string>) {
  const tables = new Map<string, readonly Row[]>();
  for (const projection of retail.projections) {
    const columns = Object.entries(projection.sqlNames).map(([name, sql]) => `"${sql}" as "${name}"`);
    const text = `select ${columns.join(', ')} from read_models.${projection.tableName}`;
    const rows = await store.query<Record<string, unknown>>({ text });
    tables.set(
      projection.id,
      rows.map((row) => projection.codec.decode(row)),
    );
  }
  const oracle = await computeRetailOracle(lines);
  expect(differencesFromOracle((id) => tables.get(id) ?? [], oracle)).toEqual([]);
  return oracle;
}

/** Imports the file, and lets a worker build every read model. */
async function importAndBuild(file: string, lines: number, config: string): Promise<void> {
  const imported = await runCli(['import', 'online-retail', file, '--config', config, '--json'], { env });
  expect(JSON.parse(imported.stdout)).toMatchObject({ written: lines, skipped: 0 });
  const worker = startCli(['start', '--role', 'worker', '--config', config], { env });
  await until(async () => {
    expect(worker.child.exitCode, worker.printed.stderr).toBe(null);
    const versions = await readRegistry(store);
    return (
      versions.length === retail.projections.length && versions.every(({ checkpoint }) => checkpoint >= BigInt(lines))
    );
  });
  await worker.end('SIGTERM');
  await expectAllApart(retail.projections);
}

/** The configuration of the sales, edited if they have several partitions. */
async function salesConfig(partitions: number | undefined): Promise<string> {
  const app = join(examples, 'online-retail/app.ts');
  if (partitions === undefined) return app;
  const path = join(folder, 'app.ts');
  const text = `
    import retail from ${JSON.stringify(app)};
    import { defineConfig } from ${JSON.stringify(join(examples, '../src/index.ts'))};
    const projections = retail.projections.map((projection) => Object.freeze({ ...projection, partitions: ${partitions} }));
    export default defineConfig({ projections, imports: retail.imports });`;
  await writeFile(path, text);
  return path;
}

const whole = 541_909;
const file = realFiles.retail.path;
const count = linesToRead(100_000, 5_000);

function testSales(partitions: number | undefined): void {
  test('the sales of a shop are imported, and every read model is exact', { timeout: 900_000 }, async () => {
    const isWhole = file !== undefined && count > whole;
    const lines =
      file === undefined ? generateSales(7, 5_000) : isWhole ? linesOf(file) : await firstLinesOf(file, count);
    const path = isWhole ? file : join(folder, 'sales.jsonl');
    if (!isWhole) await writeFile(path, [...(lines as readonly string[])].join('\n'));
    const config = await salesConfig(partitions);
    await importAndBuild(path, isWhole ? whole : (lines as readonly string[]).length, config);
    for (const version of await readRegistry(store)) expect(version.partitions).toHaveLength(partitions ?? 1);
    const oracle = await expectExactReadModels(lines);
    if (isWhole) {
      expect(oracle).toMatchObject({ lines: whole, total: '9747747.934' });
      expect([oracle.invoices.size, oracle.customers.size, oracle.totalByCountry.size]).toEqual([25_900, 4_372, 38]);
    }
  });
}
