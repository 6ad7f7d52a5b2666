import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { invoice } from '../../examples/online-retail/events.ts';
import { generateSales } from '../../examples/online-retail/generated-sales.ts';
import { retailImport } from '../../examples/online-retail/retail-import.ts';
import { beginning, type GlobalPosition, type Projection } from '../../src/index.ts';
import { importEvents } from '../../src/runtime/commands/import-events.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { processorLockKey } from '../../src/store/server/lock-keys.ts';
import { runCli, startCli } from '../support/cli.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { realFiles } from '../support/real-files.ts';
import { firstLinesOf } from '../support/retail-file.ts';
import { RowHistory } from '../support/row-history.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import app from './switch-after.ts';
import { Judge, versionShown } from './switch-judge.ts';
import { queries, subscriptions } from './switch-operations.ts';
import { type Customer, Shop } from './switch-shop.ts';
import { type Deployed, Traffic, type Watched } from './switch-traffic.ts';

let folder: string;
let database: TestDatabase;
let db: Database;
let log: EventLog;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refold-switch-'));
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [invoice]);
  const file = join(folder, 'lines.jsonl');
  await writeFile(file, (await firstLines()).join('\n'));
  await importEvents({ db, log, definition: retailImport, file });
});
afterAll(async () => {
  await db.close();
  await database.drop();
  await rm(folder, { recursive: true });
});

/** The real file's first lines, if the file is available: a history that takes a moment to fold. */
async function firstLines(): Promise<readonly string[]> {
  if (realFiles.retail.path === undefined) return generateSales(11, 20_000);
  return firstLinesOf(realFiles.retail.path, 20_000);
}

test('a second version takes over, is rolled back and reactivated under load: every response is correct, and no subscription ends', {
  timeout: 600_000,
}, async () => {
  const { histories, learn } = await learnHistory();
  const invoices = [...histories[1].keys()].map((key) => histories[1].at(key, Number.POSITIVE_INFINITY));
  const shop = new Shop(
    log,
    invoices.filter((row) => row !== null),
    25,
  );

  // Queries, live appends and fifty subscriptions, all at the process that declares only the first version.
  const old = await deploy('old', 'before');
  await until(async () => (await fetch(`${old.url}/health/ready`)).ok);
  const traffic = new Traffic(old);
  onTestFinished(() => traffic.stop());
  const watched = Array.from({ length: 25 }, (_, index) => watch(traffic, old, shop, index)).flat();
  const asked = askConstantly(traffic, shop);
  const settled = async (by: Deployed, version: 1 | 2) => {
    await until(() => {
      expect(traffic.failures).toEqual([]);
      return watched.every((one) => one.updates.at(-1)?.by === by && versionShown(one) === version);
    });
    await asked(10);
  };
  await settled(old, 1);

  // The new process starts. While this session holds its processor's lock, no process builds the second version.
  const holder = await db.connect();
  const processor = processorLockKey({
    kind: 'processor',
    name: 'invoice_summary',
    version: 2,
    partition: 0,
  });
  await holder.query('select pg_advisory_lock($1)', [processor]);
  const replacement = await deploy('new', 'after');
  expect((await fetch(`${replacement.url}/health/ready`)).ok).toBe(true);
  const early = Array.from({ length: 5 }, (_, index) => watch(traffic, replacement, shop, index)).flat();
  await until(() => early.every((one) => versionShown(one) === 1));
  for (const { invoiceNo } of shop.customers) await traffic.ask(replacement, queries.one, { no: invoiceNo });

  // The old one stops; its clients continue at the new one.
  old.stopping = true;
  traffic.front = replacement;
  expect(await old.cli.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  watched.push(...early);
  await settled(replacement, 1);

  // The second version is built from the whole log, and becomes active.
  expect(await stateOfSecond()).toBe('building');
  await holder.query('select pg_advisory_unlock($1)', [processor]);
  holder.release();
  await until(async () => (await stateOfSecond()) === 'active');
  await settled(replacement, 2);
  const ofSecond = watchSecondOnly(traffic, replacement, shop);
  await until(() => ofSecond.every((one) => versionShown(one) === 2));
  for (const { invoiceNo } of shop.customers) await traffic.ask(replacement, queries.ofSecond, { no: invoiceNo });

  // Rolled back: the first version answers again, and only clients that read columns it lacks are refused.
  expect(await operate('rollback', 'invoice_summary', '--reason', 'figures look odd')).toEqual({
    code: 0,
    signal: null,
    stdout: 'invoice_summary@1 answers again. invoice_summary@2 stays current and ready.\n',
    stderr: '',
  });
  await settled(replacement, 1);
  await until(() => ofSecond.every(({ errors }) => errors.length > 0));
  for (const { errors } of ofSecond) expect(errors).toMatchObject([{ extensions: { code: 'PROJECTION_SWITCHED' } }]);

  // Reactivated.
  expect(await operate('activate', 'invoice_summary@2')).toMatchObject({
    code: 0,
    stdout: 'invoice_summary@2 is active.\n',
  });
  await settled(replacement, 2);

  // All subscriptions get later sales, too, and in the end show the content of the log.
  await asked.nothingMoreSold();
  for (const customer of shop.customers) await shop.sell(customer, customer.invoiceNo);
  await learn();
  const judge = new Judge(histories);
  let waiting = watched;
  await until(() => {
    expect(traffic.failures).toEqual([]);
    waiting = waiting.filter((one) => !judge.isCurrent(one, 2));
    return waiting.length === 0;
  });
  await traffic.stop();
  expect(traffic.failures).toEqual([]);
  expect(replacement.cli.printed.stderr).toBe('');

  expect(judge.wrongAnswers(traffic.answers, (by) => (by === replacement ? 3 : 0))).toEqual([]);
  for (const one of watched) expect(judge.wrongUpdates(one, 3)).toEqual([]);
  for (const projection of app.projections)
    expect(await storedTable(db, projection), projection.id).toEqual(await foldedTable(log, projection));
  expect(await replacement.cli.end('SIGTERM')).toMatchObject({ code: 0 });
});

const configOf = (name: 'before' | 'after') => join(import.meta.dirname, `switch-${name}.ts`);

async function deploy(name: string, config: 'before' | 'after'): Promise<Deployed> {
  const cli = startCli(['start', '--config', configOf(config)], {
    env: { DATABASE_URL: database.url, PORT: '0', NODE_ENV: 'production', LOG_LEVEL: 'warn' },
  });
  return { name, cli, url: await cli.url(), stopping: false };
}

function operate(...cliArguments: string[]) {
  return runCli([...cliArguments, '--config', configOf('after')], { env: { DATABASE_URL: database.url } });
}

async function stateOfSecond(): Promise<string | undefined> {
  return (await readRegistry(db)).find((one) => one.name === 'invoice_summary' && one.version === 2)?.state;
}

function declared(id: string): Projection {
  return app.projections.find((projection) => projection.id === id) as Projection; // of the sample
}

/** Every state of every row; `learn` adds the states since the last call. */
async function learnHistory() {
  const first = declared('invoice_summary@1');
  const histories = {
    1: new RowHistory(first),
    2: new RowHistory(declared('invoice_summary@2')),
    customers: new RowHistory(declared('customer_lifetime_value@1')),
  };
  let learnt: GlobalPosition = beginning;
  const learn = async () => {
    const upTo = await log.horizon();
    while (learnt < upTo) {
      const page = await log.readAll({ after: learnt, upTo, filter: first.filter, limit: 10_000 });
      for (const history of Object.values(histories)) history.learn(page.events);
      learnt = page.upTo;
    }
  };
  await learn();
  return { histories, learn };
}

/** A row and a list, over one of the two transports. */
function watch(traffic: Traffic, by: Deployed, { customers }: Shop, index: number): Watched[] {
  const { invoiceNo, customerId } = customers[index % customers.length] as Customer; // below length
  const over = index % 2 === 0 ? 'WebSocket' : 'server-sent events';
  return [
    traffic.watch(by, { name: `row ${invoiceNo}`, over, query: subscriptions.row, variables: { no: invoiceNo } }),
    traffic.watch(by, {
      name: `list of ${customerId}`,
      over,
      query: subscriptions.list,
      variables: { customer: customerId },
    }),
  ];
}

function watchSecondOnly(traffic: Traffic, by: Deployed, { customers }: Shop): Watched[] {
  return customers.slice(0, 2).map(({ invoiceNo }, index) =>
    traffic.watch(by, {
      name: `largest lines of ${invoiceNo}`,
      over: index % 2 === 0 ? 'WebSocket' : 'server-sent events',
      query: subscriptions.rowOfSecond,
      variables: { no: invoiceNo },
    }),
  );
}

/** Clients that never pause, each with its own query. Returns a function that waits until each has sent so many more. */
function askConstantly(traffic: Traffic, shop: Shop) {
  const rounds = new Map<string, number>();
  let selling = true;
  let cursor: string | null = null;
  const clients: Readonly<Record<string, (by: Deployed) => Promise<unknown>>> = {
    'by id': (by) => traffic.ask(by, queries.one, { no: shop.pick().invoiceNo }),
    'by id too': (by) => traffic.ask(by, queries.one, { no: shop.pick().invoiceNo }),
    agreeing(by) {
      const { customerId, invoiceNo } = shop.pick();
      const customers = shop.customers.map((customer) => customer.customerId);
      const numbers = shop.customers.map((customer) => customer.invoiceNo);
      return traffic.ask(by, queries.agreeing, { no: invoiceNo, customerId, numbers, customers });
    },
    newest: (by) => traffic.ask(by, queries.newest),
    async page(by) {
      const { body } = await traffic.ask(by, queries.page, { after: cursor });
      const { hasNextPage, endCursor } = (
        body.data as { page: { pageInfo: { hasNextPage: boolean; endCursor: string } } }
      ).page.pageInfo; // judged later
      cursor = hasNextPage ? endCursor : null;
    },
    async 'own write'(by) {
      const customer = shop.pick();
      const after = selling ? await shop.sell(customer) : undefined;
      await traffic.ask(by, queries.one, { no: customer.invoiceNo }, after);
    },
  };
  for (const [name, ask] of Object.entries(clients)) {
    rounds.set(name, 0);
    traffic.keepDoing(name, async (by) => {
      await ask(by);
      rounds.set(name, (rounds.get(name) ?? 0) + 1);
    });
  }
  const asked = async (times: number) => {
    const before = new Map(rounds);
    await until(() => {
      expect(traffic.failures).toEqual([]);
      return [...rounds].every(([name, count]) => count >= (before.get(name) ?? 0) + times);
    });
  };
  return Object.assign(asked, {
    async nothingMoreSold() {
      selling = false;
      await asked(2);
    },
  });
}
