import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRefold,
  defineConfig,
  defineEvents,
  defineProjection,
  type GlobalPosition,
  globalPosition,
  type Projection,
  type Refold,
  t,
} from '../../../src/index.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import { auditVersion } from '../../../src/runtime/verification/audit.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { applicationFile } from '../../cli/application-file.ts';
import { seeded } from '../../support/account-traffic.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const jar = defineEvents('jar', { Filled: z.object({ grams: z.int() }), Emptied: z.object({}) });
const step = { actor: 'ann', reason: 'for the test' };

interface Options {
  readonly version?: number;
  readonly startAfter?: GlobalPosition;
  readonly partitions?: number;
}

function byEvolve({ version = 1, ...options }: Options = {}): Projection {
  return defineProjection({
    name: 'jar',
    version,
    events: jar,
    table: { jarId: t.text().primaryKey(), grams: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Filled: (row, { payload }) => ({ grams: (row?.grams ?? 0) + payload.grams }),
      Emptied: (row) => row && { grams: 0 },
    },
    history: true,
    ...options,
  });
}

function bySql({ version = 1, ...options }: Options = {}): Projection {
  return defineProjection({
    name: 'jar',
    version,
    events: jar,
    table: { jarId: t.text().primaryKey(), grams: t.integer() },
    evolveSql: {
      events: ['Filled'],
      rows: `select stream_id as jar_id, sum((payload ->> 'grams')::integer)::integer as grams from batch group by 1`,
      merge: { grams: 'add' },
    },
    ...options,
  });
}

let database: TestDatabase;
let db: Database;
const running = new Set<Refold>();

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  for (const refold of running) await refold.stop();
  running.clear();
  await db.close();
  await database.drop();
});

async function start(...projections: readonly Projection[]): Promise<Refold> {
  const refold = await createRefold(
    defineConfig({
      events: [jar],
      projections,
      database: { url: database.url },
      gateway: { port: 0, positionTimeout: 240_000, graphiql: true },
      runtime: { polling: { min: 10, max: 50 } },
      development: false,
    }),
    { logger: pino({ level: 'silent' }) },
  );
  running.add(refold);
  return refold;
}
async function stop(refold: Refold): Promise<void> {
  running.delete(refold);
  await refold.stop();
}
const fill = async ({ log }: Refold, streamId: string, ...grams: readonly number[]) => {
  const events = grams.map((one) => ({ type: 'Filled', payload: { grams: one } }) as const);
  return (await log.append({ family: jar, streamId, events })).position;
};
const statusOf = async (refold: Refold, version = 1) => {
  const found = (await refold.status()).find((one) => one.version === version);
  if (!found) throw new Error(`There is no jar@${version}.`);
  return found;
};
async function caughtUp(refold: Refold, version = 1): Promise<void> {
  const head = await refold.log.head();
  await until(async () => {
    const { state, position, rebuild } = await statusOf(refold, version);
    return (state === 'active' || state === 'ready') && position >= head && rebuild === null;
  });
}
const rowsOf = async (version = 1) => {
  const [found] = await db.query<{ table: string }>({
    text: `select table_name as table from refold.projections where version = $1`,
    values: [version],
  });
  const rows = await db.query<{ jar_id: string; grams: number }>({
    text: `select jar_id, grams from read_models.${found?.table}`,
  });
  return Object.fromEntries(
    rows.toSorted((a, b) => (a.jar_id < b.jar_id ? -1 : 1)).map((row) => [row.jar_id, row.grams]),
  );
};

test.each([
  ['evolve', byEvolve],
  ['evolve in three partitions', (options: Options) => byEvolve({ ...options, partitions: 3 })],
  ['evolveSql', bySql],
  ['evolveSql in three partitions', (options: Options) => bySql({ ...options, partitions: 3 })],
] as const)('a version folds what follows its position, live and in each form of a rebuild, and nothing else: %s', async (_, declare) => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  const writer = await start();
  const fills: { jar: string; grams: number; position: bigint }[] = [];
  const fillSome = async (refold: Refold) => {
    for (let index = 0; index < 30; index++) {
      const [jarId, grams] = [`jar ${Math.floor(random() * 6)}`, 1 + Math.floor(random() * 9)];
      fills.push({ jar: jarId, grams, position: await fill(refold, jarId, grams) });
    }
  };
  await fillSome(writer);
  const startAfter = globalPosition(fills[Math.floor(random() * 30)]?.position ?? 1n);
  await stop(writer);
  const projection = declare({ startAfter });
  const refold = await start(projection);
  const expected = () => {
    const later = fills.filter(({ position }) => position > startAfter);
    return Object.fromEntries(
      [...Map.groupBy(later, (one) => one.jar)]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, own]) => [name, own.reduce((sum, { grams }) => sum + grams, 0)]),
    );
  };
  const whole = async () => {
    await caughtUp(refold);
    expect(await rowsOf(), `seed ${seed}`).toEqual(expected());
    const options = { db, log: refold.log, readSchema: 'read_models', projection };
    expect(await verifyVersion(options)).toMatchObject({
      differences: 0,
      rowsCompared: Object.keys(expected()).length,
    });
  };
  await whole();
  await fillSome(refold);
  await whole();
  await refold.rebuilds.request('jar@1', step);
  await whole();
  await takeSnapshot({ db, readSchema: 'read_models', name: 'jar', version: 1 }, step);
  await fillSome(refold);
  await refold.rebuilds.request('jar@1', { ...step, from: 'latest' });
  await whole();
  await refold.rebuilds.request('jar@1', { ...step, inPlace: true });
  await whole();
  await database.administer(
    `update read_models.jar set grams = grams + 1 where jar_id = '${Object.keys(expected())[0]}'`,
  );
  const audit = { db, log: refold.log, readSchema: 'read_models', projection, oneOf: 1, round: 0n, share: 1 };
  expect(await auditVersion({ ...audit, signal: new AbortController().signal })).toMatchObject({ differences: 1 });
});

test('a partial version says that it is: status, command line, GraphQL, SQL', async () => {
  const writer = await start();
  const startAfter = globalPosition(await fill(writer, 'a', 1, 2, 3));
  await stop(writer);
  const refold = await start(byEvolve({ startAfter }));
  await fill(refold, 'a', 4);
  await caughtUp(refold);
  expect(await statusOf(refold)).toMatchObject({ startsAfter: startAfter, state: 'active', eventsFolded: 1n });
  const { data } = await refold.graphql(
    '{ _meta { projections { startsAfter } } __type(name: "Jar") { description } jar(jarId: "a") { grams } }',
  );
  expect(data).toEqual({
    _meta: { projections: [{ startsAfter: expect.stringMatching(/^3\b/) }] },
    __type: {
      description: 'A row of the read model `jar`. The read model is partial: it holds only events after position 3.',
    },
    jar: { grams: 4 },
  });
  expect(await db.query({ text: 'select starts_after from refold.lag' })).toEqual([{ starts_after: 3n }]);
  const file = await applicationFile('export default defineConfig({ projections: [] });');
  const { stdout } = await runCliHere(['status', '--config', file], { DATABASE_URL: database.url });
  expect(stdout).toContain('active (partial)');
  expect(stdout).toContain('jar@1 is partial: it holds only events after position 3');
});

test('a partial version does not replace one that begins earlier, unless an operator activates it', async () => {
  const refold = await start(byEvolve());
  await fill(refold, 'a', 1, 2);
  await caughtUp(refold);
  await stop(refold);
  const next = await start(byEvolve(), byEvolve({ version: 2, startAfter: globalPosition('1') }));
  await caughtUp(next, 2);
  const { state, heldReason } = await until(async () => {
    const status = await statusOf(next, 2);
    return status.heldReason !== null && status;
  });
  expect([state, heldReason]).toEqual([
    'ready',
    `It is partial: it holds only events after position 1, and jar@1 has earlier ones. 'refold activate jar@2' activates it all the same.`,
  ]);
  await next.lifecycle.activate('jar', 2, step);
  await until(async () => {
    const { data } = await next.graphql('{ jar(jarId: "a") { grams } }');
    return JSON.stringify(data) === '{"jar":{"grams":2}}';
  });
  await stop(next);

  // One that begins as early or earlier takes over by itself.
  const last = await start(
    byEvolve(),
    byEvolve({ version: 2, startAfter: globalPosition('1') }),
    byEvolve({ version: 3, startAfter: globalPosition('1') }),
    byEvolve({ version: 4 }),
  );
  await until(async () => (await statusOf(last, 4)).state === 'active');
  expect((await statusOf(last, 3)).heldReason ?? '').not.toContain(
    'partial: it holds only events after position 1, and jar@2',
  );
});

test('past states lack the earlier events, and a moment before the position is refused', async () => {
  const writer = await start();
  await fill(writer, 'a', 1, 2);
  await stop(writer);
  const refold = await start(byEvolve({ startAfter: globalPosition('1') }));
  await fill(refold, 'a', 4);
  await caughtUp(refold);
  const asOf = (position: string) => refold.graphql(`{ jar(jarId: "a", asOf: { position: "${position}" }) { grams } }`);
  expect((await asOf('2')).data).toEqual({ jar: { grams: 2 } });
  expect((await asOf('1')).data).toEqual({ jar: null });
  expect((await asOf('0')).errors?.[0]?.message).toBe(
    `'asOf' is at position 0, and jar@1 is partial: it holds only events after position 1.`,
  );
  const { data } = await refold.graphql('{ jarEvents(jarId: "a") { nodes { position row { grams } } } }');
  expect(data).toEqual({
    jarEvents: {
      nodes: [
        { position: expect.stringMatching(/^2\b/), row: { grams: 2 } },
        { position: expect.stringMatching(/^3\b/), row: { grams: 6 } },
      ],
    },
  });
});

test('another position needs another version, and must be in the log; mode inline is refused', async () => {
  const writer = await start();
  await fill(writer, 'a', 1, 2, 3);
  await stop(writer);
  await stop(await start(byEvolve({ startAfter: globalPosition('1') })));
  await expect(start(byEvolve({ startAfter: globalPosition('2') }))).rejects.toThrow(
    `jar@1: its table begins after position 1, and 'startAfter' is now 2. Undo the change and declare it as jar@2 beside this version.`,
  );
  await expect(
    start(byEvolve({ startAfter: globalPosition('1') }), byEvolve({ version: 2, startAfter: globalPosition('4') })),
  ).rejects.toThrow(`jar@2: 'startAfter' is position 4, and the log ends at 3.`);
  const declare = (options: object) => () =>
    defineProjection({
      name: 'jar',
      version: 1,
      events: jar,
      table: { jarId: t.text().primaryKey() },
      key: (event) => event.streamId,
      evolve: { Filled: () => ({}) },
      ...options,
    });
  expect(declare({ mode: 'inline', startAfter: globalPosition('1') })).toThrow(
    `jar@1: mode 'inline' is for rows that commands rely on, and with 'startAfter' the table is partial. Leave 'startAfter' out, or the mode.`,
  );
  expect(declare({ startAfter: 1 })).toThrow(
    `jar@1: 'startAfter' is a position, such as globalPosition('1042'), found 1.`,
  );
  expect(declare({ mode: 'inline', startAfter: globalPosition('0') })).not.toThrow();
});
