import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { seeded } from '../support/account-traffic.ts';
import { effort } from '../support/effort.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { basketV2, type DevApplication, type Followed, startDev } from './dev-application.ts';

let database: TestDatabase;
let db: Database;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  await db.close();
  await database.drop(); // fails if the process left a connection open
});

const rows = '{ basket(cartId: "a") { count } total(cartId: "a") { sum } }';
const counted = 'subscription { basket(cartId: "a") { ... on Basket { count } } }';
const countOf = (count: number) => ({ data: { basket: { count } } });

const answers = (dev: DevApplication, query: string, expected: unknown) =>
  until(async () => isDeepStrictEqual(await dev.ask(query), expected));
const receives = ({ messages }: Followed, message: unknown) =>
  until(() => messages.some((one) => isDeepStrictEqual(one, message)));

/** The changes of a projection's states so far. */
async function transitionsOf(name: string): Promise<readonly string[]> {
  const found = await db.query<{ reason: string }>({
    text: 'select reason from refold.transitions where name = $1 order by id',
    values: [name],
  });
  return found.map(({ reason }) => reason);
}

async function end({ process }: DevApplication, stderr: unknown = ''): Promise<void> {
  expect(await process.end('SIGINT')).toMatchObject({ code: 0, stderr });
}

test('an edited evolve rebuilds that version only, and subscriptions stay open', async () => {
  const dev = await startDev(database.url);
  await dev.add(2);
  const row = dev.follow(counted);
  const feed = dev.follow('subscription { basketChanges { reset lagged changes { row { count } } } }');
  await receives(row, countOf(2));
  const others = await transitionsOf('total');

  await dev.edit('basket.v1.ts', 'weight * 1', 'weight * 10');
  await receives(row, countOf(20));
  await dev.add(3);
  await receives(row, countOf(50));
  const reset = { reset: true, lagged: 'REPLACED', changes: [{ row: { count: 20 } }] };
  await receives(feed, { data: { basketChanges: reset } });
  expect([row.ended, feed.ended]).toEqual([undefined, undefined]);
  expect(await dev.ask(rows)).toEqual({ data: { basket: { count: 50 }, total: { sum: 5 } } });
  expect((await transitionsOf('basket')).slice(-3)).toEqual([
    'code changed in development',
    'caught up',
    "caught up, activation 'auto'",
  ]);
  expect(await transitionsOf('total')).toEqual(others);
  await dev.process.prints(/\nrefold: basket@1: its code changed, so it is rebuilt \(development\)\.\n/);
  await dev.process.prints(/\nrefold: basket@1 is active\n/);

  // An inline version too, whose rows commit with their appends.
  await dev.edit('total.v1.ts', 'quantity * 1', 'quantity * 100');
  await answers(dev, rows, { data: { basket: { count: 50 }, total: { sum: 500 } } });
  await dev.add(1);
  await answers(dev, rows, { data: { basket: { count: 60 }, total: { sum: 600 } } });
  await receives(row, countOf(60));
  await end(dev);
});

test('new versions, commands and columns appear in the schema and in its file, and subscriptions stay open', async () => {
  const dev = await startDev(database.url, ['--schema', 'schema.graphql']);
  await dev.process.prints(/\nrefold: the schema file is written\n/);
  expect(await dev.read('schema.graphql')).toContain('type Basket ');
  await dev.add(2);
  const row = dev.follow(counted);
  await receives(row, countOf(2));

  // The import is saved before the file that it names.
  await dev.edit(
    'refold.config.ts',
    "from './basket.v1.ts';",
    "from './basket.v1.ts';\nimport { basketV2 } from './new/basket.v2.ts';",
  );
  await dev.edit('refold.config.ts', '[basketV1,', '[basketV1, basketV2,');
  await until(() => dev.process.printed.stderr.includes('Cannot find module'));
  expect(await dev.ask(rows)).toEqual({ data: { basket: { count: 2 }, total: { sum: 2 } } });
  await dev.write('new/basket.v2.ts', basketV2.replaceAll("from './", "from '../"));
  await dev.process.prints(/\nrefold: basket@2 is new, so it is built\nrefold: schema: Basket.label was added\.\n/);
  await dev.process.prints(/\nrefold: basket@2 is active\n/);
  const labelled = '{ basket(cartId: "a") { count label } }';
  await answers(dev, labelled, { data: { basket: { count: 2, label: 'none' } } });
  expect(await dev.read('schema.graphql')).toContain('label: ');

  await dev.edit(
    'commands.ts',
    'export const addItem',
    'const options = { name: "addGift", description: "A gift." } as const;\nexport const addItem',
  );
  await dev.write(
    'commands.ts',
    `${await dev.read('commands.ts')}
export const addGift = defineCommand({
  ...options,
  input: z.object({ cartId: z.string() }),
  events: cart,
  stream: ({ cartId }) => cartId,
  decide: () => ({ type: 'ItemAdded', payload: { name: 'Gift', quantity: 7 } }),
});
`,
  );
  await dev.edit('refold.config.ts', 'import { addItem }', 'import { addGift, addItem }');
  await dev.edit('refold.config.ts', '[addItem]', '[addItem, addGift]');
  await dev.process.prints(/\nrefold: schema: Mutation.addGift was added\.\n/);
  expect(await dev.ask('mutation { addGift(input: { cartId: "a" }) { basket { count } } }')).toEqual({
    data: { addGift: { basket: { count: 9 } } },
  });
  await until(async () => (await dev.read('schema.graphql')).includes('addGift('));
  await receives(row, countOf(9));

  await dev.edit('total.v1.ts', 'sum: t.integer()', 'sum: t.integer(), currency: t.text().default("EUR")');
  await dev.process.prints(/\nrefold: total@1: its table changed, so it is rebuilt \(development\)\.\n/);
  await answers(dev, '{ total(cartId: "a") { sum currency } }', { data: { total: { sum: 9, currency: 'EUR' } } });
  await until(async () => (await dev.read('schema.graphql')).includes('currency: '));
  await dev.add(1);
  await receives(row, countOf(10));
  expect(row.ended).toBeUndefined();
  await end(dev, expect.stringContaining('Cannot find module'));
});

test('a file that cannot be loaded is shown, and the last good state goes on serving', async () => {
  const dev = await startDev(database.url);
  await dev.add(2);
  const row = dev.follow(counted);
  await receives(row, countOf(2));
  const served = (count: number, sum: number) => ({ data: { basket: { count }, total: { sum } } });
  const shown = (text: RegExp) => until(() => text.test(dev.process.printed.stderr));

  await dev.edit('basket.v1.ts', 'weight * 1', 'weight * = 10');
  await shown(
    /refold\.config\.ts' can't be loaded: Expression expected \(at \/.*\/basket\.v1\.ts:12\)\n\n(.*\n)*.*weight \* = 10.*\n *\^+\n\nrefold: the last good state goes on serving\n/,
  );
  await dev.add(1);
  await receives(row, countOf(3));
  await answers(dev, rows, served(3, 3));

  // Another file is edited meanwhile. Both take effect when all of it can be loaded.
  await dev.edit('total.v1.ts', 'quantity * 1', 'quantity * 2');
  await dev.edit('basket.v1.ts', 'weight * = 10', 'weight * 10');
  await answers(dev, rows, served(30, 6));
  await receives(row, countOf(30));

  // A declaration that is wrong.
  await dev.edit('basket.v1.ts', 'ItemAdded:', 'ItmAdded:');
  await shown(/refold: basket@1: evolve handles 'ItmAdded', which cart does not define\. Did you mean 'ItemAdded'\?/);
  await answers(dev, rows, served(30, 6));
  await dev.edit('basket.v1.ts', 'ItmAdded:', 'ItemAdded:');

  // A change that the registry refuses.
  await dev.edit('refold.config.ts', '[basketV1, totalV1]', '[basketV1]');
  await shown(/refold: total@1 is active, but this program declares no active version of 'total'/);
  await dev.add(1);
  await answers(dev, rows, served(40, 8));
  await dev.edit('refold.config.ts', '[basketV1]', '[basketV1, totalV1]');

  // Code that an evolve calls is not part of its fingerprint.
  await dev.write('weight.ts', "console.log('weight is loaded');\nexport const weight = 2;\n");
  await dev.process.prints(
    /weight is loaded\nrefold: reloaded; no declaration changed\. If the rows depend on the edited code, rebuild them: refold rebuild basket@1\n/,
  );
  // Files that do not import an edited one are not loaded again.
  await dev.edit('total.v1.ts', 'quantity * 2', 'quantity * 1');
  await answers(dev, rows, served(40, 4));
  expect(dev.process.printed.stdout.match(/weight is loaded/g)).toHaveLength(1);
  // Only if their last import failed: the reason may be elsewhere.
  await dev.write(
    'weight.ts',
    "import { accessSync } from 'node:fs';\naccessSync('flag');\nexport const weight = 2;\n",
  );
  await shown(/ENOENT: no such file or directory, access 'flag'/);
  await dev.write('flag', '');
  await dev.edit('total.v1.ts', 'quantity * 1', 'quantity * 2');
  await answers(dev, rows, served(40, 8));
  await dev.edit('refold.config.ts', 'positionTimeout: 300_000', 'positionTimeout: 200_000');
  await dev.process.prints(/\nrefold: the options 'gateway' changed: restart refold dev to apply them\n/);
  await dev.add(1);
  await answers(dev, rows, served(60, 10));
  expect(row.ended).toBeUndefined();
  await end(dev, expect.any(String));
});

test('whatever is edited while commands run, no command fails and the rows follow the last good code', async () => {
  const random = seeded(seed);
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T; // none is empty
  const dev = await startDev(database.url);
  await dev.add(1);
  const row = dev.follow(counted);
  let added = 1;
  let isDone = false;
  const traffic = (async () => {
    while (!isDone) {
      await dev.add(1);
      added++;
    }
  })();
  const factors = { 'basket.v1.ts': 1, 'total.v1.ts': 1 };
  const broken = new Set<keyof typeof factors>();
  const textOf = (file: keyof typeof factors) => `* ${broken.has(file) ? '= ' : ''}${factors[file]} `;
  const seen = () => dev.ask('{ basket(cartId: "a") { count } total(cartId: "a") { sum } }');
  const isThere = async () => {
    const { data, errors } = await seen();
    const { basket, total } = (data ?? {}) as { basket?: { count: number }; total?: { sum: number } };
    if (errors || !basket || !total) return false;
    return basket.count % factors['basket.v1.ts'] === 0 && total.sum % factors['total.v1.ts'] === 0;
  };
  for (let step = 0; step < effort(20, 8); step++) {
    const file = pick(['basket.v1.ts', 'total.v1.ts'] as const);
    const before = textOf(file);
    const isBreaking = random() < 0.3;
    if (isBreaking) broken.add(file);
    else broken.delete(file);
    factors[file] = Math.floor(random() * 1000) + 1;
    await dev.edit(file, before, textOf(file));
    if (broken.size === 0 && random() < 0.5) await until(isThere);
  }
  for (const file of broken) {
    const before = textOf(file);
    broken.delete(file);
    await dev.edit(file, before, textOf(file));
  }
  await until(isThere);
  isDone = true;
  await traffic;
  const count = added * factors['basket.v1.ts'];
  await answers(dev, rows, { data: { basket: { count }, total: { sum: added * factors['total.v1.ts'] } } });
  await receives(row, countOf(count));
  expect(row.messages.at(-1)).toEqual(countOf(count));
  expect(row.ended).toBeUndefined();
  await end(dev, expect.any(String));
});

test('GraphiQL is opened if --open is set, and never else', async () => {
  const programs = await mkdtemp(join(tmpdir(), 'refold-opener-'));
  onTestFinished(() => rm(programs, { recursive: true }));
  const opened = join(programs, 'opened');
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(programs, name), `#!/bin/sh\necho "$@" >> ${opened}\n`);
    await chmod(join(programs, name), 0o755);
  }
  const path = { PATH: `${programs}:${process.env.PATH}` };
  const silent = await startDev(database.url, [], path);
  await end(silent);
  const dev = await startDev(database.url, ['--open'], path);
  const lines = await until(() => readFile(opened, 'utf8').catch(() => undefined));
  expect(lines).toBe(`${dev.url}/graphql\n`);
  await end(dev);
});
