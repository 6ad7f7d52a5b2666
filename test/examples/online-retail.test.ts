import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import app from '../../examples/online-retail/app.ts';
import type { InvoiceLine } from '../../examples/online-retail/events.ts';
import { generateSales } from '../../examples/online-retail/generated-sales.ts';
import { retailImport } from '../../examples/online-retail/retail-import.ts';
import type { ImportedAppend, ImportLine, RecordedEvent } from '../../src/index.ts';
import { createRecorder, ReadTableInMemory } from '../support/in-memory.ts';
import { realFiles } from '../support/real-files.ts';
import { differencesFromOracle } from '../support/retail-comparison.ts';
import { firstLinesOf } from '../support/retail-file.ts';
import { computeRetailOracle } from '../support/retail-oracle.ts';

const generated = generateSales(20_101_201, 4_000);
const real = realFiles.retail.path;
const files = [
  { name: 'a generated file with all quirks', lines: async () => generated },
  // The test of the import reads the whole file, with a database.
  ...(real === undefined
    ? []
    : [{ name: 'the first lines of the real file', lines: () => firstLinesOf(real, 20_000) }]),
];

describe.each(files)('the read models of $name', ({ lines }) => {
  test('equal an independent computation from the file', async () => {
    const tables = await foldWholeFile(await lines(), 5_000);
    const oracle = await computeRetailOracle(await lines());
    expect(differencesFromOracle((id) => tables.get(id)?.rows.values() ?? [], oracle)).toEqual([]);
  });
});

test('the rows are the same for every size of batch', async () => {
  const whole = await foldWholeFile(generated, Number.POSITIVE_INFINITY);
  for (const batchSize of [1, 7, 1000]) {
    const inBatches = await foldWholeFile(generated, batchSize);
    for (const [id, table] of inBatches) expect(table.plain(), id).toEqual(whole.get(id)?.plain());
  }
});

describe('the import', () => {
  test('groups the neighbouring lines of an invoice and numbers them consecutively', async () => {
    const appends = await collect(appendsOf(['1', '1', '2', '1', '3'].map((InvoiceNo) => lineOf({ InvoiceNo }))));
    expect(appends.map((append) => [append.idempotencyKey, append.expectedVersion, linesIn(append)])).toEqual([
      ['online-retail:1:1', 0, [1, 2]],
      ['online-retail:2:1', 0, [1]],
      ['online-retail:1:3', 2, [3]],
      ['online-retail:3:1', 0, [1]],
    ]);
  });

  test('splits an invoice that is too long for one append', async () => {
    const appends = await collect(appendsOf(Array.from({ length: 450 }, () => lineOf({ InvoiceNo: '573585' }))));
    expect(appends.map((append) => [append.idempotencyKey, append.events.length])).toEqual([
      ['online-retail:573585:1', 200],
      ['online-retail:573585:201', 200],
      ['online-retail:573585:401', 50],
    ]);
  });

  test('writes one event per line of any file, one key per append, and numbers each invoice without gaps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 900 }), async (seed, rows) => {
        const lines = generateSales(seed, rows);
        const appends = await collect(appendsOf(lines));
        expect(appends.reduce((events, append) => events + append.events.length, 0)).toBe(lines.length);
        expect(new Set(appends.map((append) => append.idempotencyKey)).size).toBe(appends.length);
        for (const append of appends) {
          expect(linesIn(append)[0]).toBe(Number(append.expectedVersion) + 1);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('takes a price from the text of the file, not from a float', async () => {
    const prices = ['0.1', '9007199254740.993', '1e-3', '-11062.060', '2.50', '4'];
    const appends = await collect(appendsOf(prices.map((UnitPrice) => lineOf({}).replace('2.55', UnitPrice))));
    expect(appends.flatMap((append) => payloadsIn(append).map((line) => line.unitPrice))).toEqual([
      '0.1',
      '9007199254740.993',
      '0.001',
      '-11062.06',
      '2.5',
      '4',
    ]);
  });

  test('distinguishes sales, returns, losses and bad debts', async () => {
    const appends = await collect(
      appendsOf([
        lineOf({ InvoiceNo: '536365' }),
        lineOf({ InvoiceNo: 'C536379', Quantity: -1 }),
        lineOf({ InvoiceNo: '536589', Quantity: -10 }),
        lineOf({ InvoiceNo: 'A563186' }),
      ]),
    );
    expect(appends.map((append) => append.events[0]?.type)).toEqual([
      'ItemInvoiced',
      'ItemReturned',
      'StockWrittenOff',
      'DebtAdjusted',
    ]);
  });

  test('keeps a line as in the source, with a local time and no zone', async () => {
    const [append] = await collect(appendsOf([lineOf({ Description: ' 12" ☂ LANTERN  ', CustomerID: null })]));
    expect(append?.events[0]?.payload).toEqual({
      line: 1,
      stockCode: '85123A',
      description: ' 12" ☂ LANTERN  ',
      quantity: 6,
      unitPrice: '2.55',
      invoicedAt: '2010-12-01T08:26:00',
      customerId: null,
      country: 'United Kingdom',
    });
  });
});

/** Folds the whole file through every projection, in batches; only the rows stay in memory. */
async function foldWholeFile(lines: AsyncIterable<string> | Iterable<string>, batchSize: number) {
  const tables = new Map(app.projections.map((projection) => [projection.id, new ReadTableInMemory(projection)]));
  const record = createRecorder();
  let batch: RecordedEvent[] = [];
  const foldBatch = () => {
    for (const table of tables.values()) table.fold(batch);
    batch = [];
  };
  for await (const append of appendsOf(lines)) {
    for (const event of await record(append)) {
      batch.push(event);
      if (batch.length >= batchSize) foldBatch();
    }
  }
  foldBatch();
  return tables;
}

function appendsOf(lines: AsyncIterable<string> | Iterable<string>): AsyncIterable<ImportedAppend> {
  return retailImport.toAppends(numbered(lines));
}

async function* numbered(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<ImportLine> {
  let number = 0;
  for await (const text of lines) yield { text, number: ++number };
}

async function collect(appends: AsyncIterable<ImportedAppend>): Promise<ImportedAppend[]> {
  const collected: ImportedAppend[] = [];
  for await (const append of appends) collected.push(append);
  return collected;
}

function payloadsIn(append: ImportedAppend): InvoiceLine[] {
  return append.events.map((event) => event.payload as InvoiceLine); // every event type of the family has this payload
}

function linesIn(append: ImportedAppend): number[] {
  return payloadsIn(append).map((line) => line.line);
}

function lineOf(changes: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    InvoiceNo: '536365',
    StockCode: '85123A',
    Description: 'WHITE HANGING HEART T-LIGHT HOLDER',
    Quantity: 6,
    InvoiceDate: '2010-12-01 08:26:00',
    UnitPrice: 2.55,
    CustomerID: '17850',
    Country: 'United Kingdom',
    ...changes,
  });
}
