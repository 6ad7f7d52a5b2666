import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import app from '../../examples/online-retail/app.ts';
import type { InvoiceLine } from '../../examples/online-retail/events.ts';
import { generateSales } from '../../examples/online-retail/generated-sales.ts';
import { beginning, type RecordedEvent } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { linesToRead } from '../support/effort.ts';
import { realFiles } from '../support/real-files.ts';
import { differencesFromOracle } from '../support/retail-comparison.ts';
import { firstLinesOf, linesOf } from '../support/retail-file.ts';
import { computeRetailOracle, type RetailOracle } from '../support/retail-oracle.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let folder: string;
let database: TestDatabase;
let runtime: Runtime;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refold-retail-'));
});

beforeEach(async () => {
  database = await createTestDatabase();
  runtime = await startRuntime({
    config: app,
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: process.env.LOG ?? 'silent' }),
  });
});

afterEach(async () => {
  for (const child of children) await killed(child);
  await runtime.stop();
  await database.drop();
});

afterAll(() => rm(folder, { recursive: true }));

describe('an import from the command line', () => {
  test('that is killed in the middle is finished by the next without duplicates, and the read models are exact', async () => {
    const lines = generateSales(7, 6_000);
    const file = join(folder, 'generated.jsonl.gz');
    await writeFile(file, gzipSync(`${lines.join('\n')}\n`));

    await importKilledInTheMiddle(lines);
    const there = await eventsInLog();
    expect(there).toBeGreaterThan(0);
    expect(there).toBeLessThan(lines.length);

    expect(await importOf(file)).toMatchObject({ written: lines.length - there, skipped: there });
    expect(await importOf(file)).toMatchObject({ written: 0, skipped: lines.length });
    expect(await eventsInLog()).toBe(lines.length);
    await expectExactReadModels(lines);
  });

  test('writes the lines in the order of the file, over all invoices', async () => {
    const lines = generateSales(8, 4_000);
    const file = join(folder, 'ordered.jsonl');
    await writeFile(file, lines.join('\n'));
    await importOf(file);
    const { events } = await runtime.log.readAll({
      after: beginning,
      upTo: await runtime.log.head(),
      filter: [{ family: 'invoice', types: app.families[0]?.types ?? [] }],
      limit: lines.length + 1,
    });
    expect(events.map(lineInLog)).toEqual(linesInFile(lines));
  });
});

if (realFiles.retail.path !== undefined) {
  const file = realFiles.retail.path;
  const whole = 541_909;
  test('the read models of the real file are exact, and match its published totals', {
    timeout: 900_000,
  }, async () => {
    const count = linesToRead(50_000, 10_000);
    if (count < whole) {
      const lines = await firstLinesOf(file, count);
      const beginning = join(folder, 'beginning.jsonl');
      await writeFile(beginning, lines.join('\n'));
      expect(await importOf(beginning)).toMatchObject({ written: count, skipped: 0 });
      await expectExactReadModels(lines);
      return;
    }
    expect(await importOf(file)).toMatchObject({ written: whole, skipped: 0 });
    const oracle = await expectExactReadModels(linesOf(file));
    expect(oracle).toMatchObject({ lines: whole, total: '9747747.934' });
    expect([oracle.invoices.size, oracle.customers.size, oracle.totalByCountry.size]).toEqual([25_900, 4_372, 38]);
  });
}

async function expectExactReadModels(lines: AsyncIterable<string> | Iterable<string>): Promise<RetailOracle> {
  const head = await runtime.log.head();
  for (const projection of app.projections) {
    await runtime.positions.waitFor(projection, head, { timeout: Number.POSITIVE_INFINITY });
  }
  const tables = new Map<string, readonly Row[]>();
  for (const projection of app.projections) {
    const columns = Object.entries(projection.sqlNames).map(([name, sql]) => `"${sql}" as "${name}"`);
    const raw = await runtime.db.query<Record<string, unknown>>({
      text: `select ${columns.join(', ')} from read_models.${projection.tableName}`,
    });
    tables.set(
      projection.id,
      raw.map((row) => projection.codec.decode(row)),
    );
  }
  const oracle = await computeRetailOracle(lines);
  expect(differencesFromOracle((id) => tables.get(id) ?? [], oracle)).toEqual([]);
  return oracle;
}

/** Sends an import the first half of the lines without an end, and kills it while it writes them. */
async function importKilledInTheMiddle(lines: readonly string[]): Promise<void> {
  const pipe = join(folder, 'half.jsonl');
  execFileSync('mkfifo', [pipe]);
  const child = startImport(pipe);
  const writer = createWriteStream(pipe);
  writer.on('error', () => {}); // the reader is killed
  writer.write(`${lines.slice(0, lines.length / 2).join('\n')}\n`);
  await until(async () => {
    expect(child.exitCode, 'the import ended by itself').toBe(null);
    return (await eventsInLog()) > lines.length / 8;
  });
  await killed(child);
  writer.destroy();
  // Open transactions are committed or rolled back once the server has noticed.
  await until(async () => (await importSessions()) === 0);
}

async function importOf(file: string): Promise<unknown> {
  const child = startImport(file);
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(output);
}

function startImport(file: string) {
  const root = join(import.meta.dirname, '../..');
  const config = join(root, 'examples/online-retail/app.ts');
  const child = spawn(
    process.execPath,
    [join(root, 'src/cli/main.ts'), 'import', 'online-retail', file, '--config', config, '--json'],
    { env: { ...process.env, DATABASE_URL: database.url }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  children.add(child);
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function eventsInLog(): Promise<number> {
  const [row] = await runtime.db.query<{ count: bigint }>({ text: 'select count(*) from refold.events' });
  return Number(row?.count);
}

async function importSessions(): Promise<number> {
  const [row] = await runtime.db.query<{ count: bigint }>({
    text: `select count(*)
      from pg_stat_activity
      where datname = current_database()
        and application_name = 'refold-cli'`,
  });
  return Number(row?.count);
}

function lineInLog({ streamId, payload }: RecordedEvent): string {
  const { line, stockCode, quantity } = payload as InvoiceLine; // every event of the family has this payload
  return `${streamId} ${line} ${stockCode} ${quantity}`;
}

function linesInFile(lines: readonly string[]): string[] {
  const ordinals = new Map<string, number>();
  return lines.map((text) => {
    const { InvoiceNo, StockCode, Quantity } = JSON.parse(text);
    const line = (ordinals.get(InvoiceNo) ?? 0) + 1;
    ordinals.set(InvoiceNo, line);
    return `${InvoiceNo} ${line} ${StockCode} ${Quantity}`;
  });
}
