import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { RefoldError } from '../../../src/errors.ts';
import { defineConfig, defineEvents, defineProjection, type Projection, t, tenant } from '../../../src/index.ts';
import { listDeadLetters, retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createRuntimeMetrics } from '../../../src/runtime/monitoring/metrics.ts';
import { createRowHistory } from '../../../src/runtime/reads/row-history.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { auditVersion } from '../../../src/runtime/verification/audit.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { refusalOf } from '../../../src/store/tables/refused-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const parcel = defineEvents('parcel', {
  Sent: z.object({ tenantId: z.string(), tracking: z.string(), weight: z.int() }),
  Weighed: z.object({ weight: z.int() }),
  Relabelled: z.object({ tracking: z.string() }),
  Lost: z.object({}),
});
type Policy = 'stop' | 'skip' | 'dead-letter';

/** Tracking numbers are unique, and a check that `setUp` adds requires positive weights. */
function parcels(onError: Policy, mode: 'async' | 'inline' = 'async'): Projection {
  return defineProjection({
    name: 'parcel',
    version: 1,
    mode,
    events: parcel,
    table: {
      parcelId: t.text().primaryKey(),
      tenantId: t.text(),
      // With mode 'inline', unique columns refuse an append instead of keeping dead letters of it.
      tracking: mode === 'inline' && onError === 'dead-letter' ? t.text().index() : t.text().unique(),
      weight: t.integer(),
    },
    access: tenant('tenantId'),
    key: (event) => event.streamId,
    evolve: {
      Sent: (_, { payload }) => payload,
      Weighed: (row, { payload }) => row && { ...row, ...payload },
      Relabelled: (row, { payload }) => row && { ...row, ...payload },
      Lost: () => null,
    },
    setUp: async ({ query, table }) => {
      await query(`alter table ${table} add constraint has_weight check (weight > 0)`);
      // PostgreSQL quotes the text that it can't read as a number.
      await query(`alter table ${table} add constraint is_light check (weight < 100 or tracking::integer > 0)`);
    },
    onError,
    history: true,
  });
}

let database: TestDatabase;
const running = new Set<Runtime>();
let lines: string[];

beforeEach(async () => {
  database = await createTestDatabase();
  lines = [];
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
  await database.drop();
  // No line of any level quotes a value of a row that has an access rule, not even from an error's cause.
  expect(lines.filter((line) => /T-\d|tenant-\d/.test(line))).toEqual([]);
});

const logged = () => lines.map((line) => JSON.parse(line) as { readonly msg: string; readonly skipped?: number });

async function start(projections: readonly Projection[], pageSize = 200): Promise<Runtime> {
  const runtime = await startRuntime({
    config: defineConfig({ projections, auth: async () => null, runtime: { pageSize } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
  });
  running.add(runtime);
  return runtime;
}

const sent = (tenantId: string, tracking: string, weight = 1) =>
  ({ type: 'Sent', payload: { tenantId, tracking, weight } }) as const;
const weighed = (weight: number) => ({ type: 'Weighed', payload: { weight } }) as const;
const lost = { type: 'Lost', payload: {} } as const;
const relabelled = (tracking: string) => ({ type: 'Relabelled', payload: { tracking } }) as const;
type ParcelEvent = ReturnType<typeof sent | typeof weighed | typeof relabelled> | typeof lost;

async function append({ log }: Runtime, streamId: string, ...events: readonly ParcelEvent[]) {
  return log.append({ family: parcel, streamId, events });
}

async function caughtUp(runtime: Runtime): Promise<void> {
  const head = await runtime.log.horizon();
  await until(async () => (await runtime.status()).every((one) => one.state === 'active' && one.position >= head));
}

/** The last events may be folded after a rebuild, by the processor. */
async function rebuilt(runtime: Runtime): Promise<void> {
  await until(async () => (await runtime.status())[0]?.rebuild === null);
  await caughtUp(runtime);
}

const rows = ({ db }: Runtime) =>
  db.query<{ parcel_id: string; tracking: string; weight: number }>({
    text: 'select parcel_id, tracking, weight from read_models.parcel order by parcel_id',
  });

async function letters(runtime: Runtime, projection: Projection) {
  const options = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection };
  return (await listDeadLetters(options)).map(({ key, position, error }) => [key?.[0], position, error === null]);
}

test('a unique value that another tenant has blocks only its own row', async () => {
  const projection = parcels('dead-letter');
  const runtime = await start([projection]);
  await append(runtime, 'a', sent('tenant-1', 'T-1'));
  const { position } = await append(runtime, 'b', sent('tenant-2', 'T-1'));
  await append(runtime, 'b', weighed(7));
  await append(runtime, 'c', sent('tenant-2', 'T-2'), weighed(9));
  await caughtUp(runtime);
  expect(await rows(runtime)).toEqual([
    { parcel_id: 'a', tracking: 'T-1', weight: 1 },
    { parcel_id: 'c', tracking: 'T-2', weight: 9 },
  ]);
  expect(await letters(runtime, projection)).toEqual([
    ['b', position, false],
    ['b', position + 1n, true],
  ]);
  const [letter] = await listDeadLetters({ ...runtime, readSchema: 'read_models', projection });
  expect(letter?.error?.message).toContain("its 'tracking' is already taken by another row");
  expect(JSON.stringify(letter?.error)).not.toMatch(/T-1|\\"a\\"|tenant-1/);
  // The other row releases the value, and the row is folded.
  await append(runtime, 'a', lost);
  await caughtUp(runtime);
  const step = { actor: 'ann', reason: 'free now' };
  expect(await retryDeadLetters({ ...runtime, readSchema: 'read_models', projection }, step)).toEqual({
    folded: 2,
    discarded: 0,
    left: 0,
  });
  expect(await rows(runtime)).toEqual([
    { parcel_id: 'b', tracking: 'T-1', weight: 7 },
    { parcel_id: 'c', tracking: 'T-2', weight: 9 },
  ]);
});

test('a row that a check of setUp refuses stops the processor at its event, and everything before it is in the table', async () => {
  const runtime = await start([parcels('stop')]);
  await append(runtime, 'a', sent('tenant-1', 'T-1'));
  await append(runtime, 'b', sent('tenant-1', 'T-2'), weighed(4), weighed(-3));
  await append(runtime, 'c', sent('tenant-1', 'T-3'));
  const error = await until(async () => (await runtime.status())[0]?.error);
  expect(error.message).toMatch(/^parcel@1: the database refuses the row that 'Weighed' leads to at position 4 /);
  expect(error.message).toMatch(/violates check constraint "has_weight"/);
  expect(error.message).not.toMatch(/'b'|T-2|tenant-1/);
  const [{ position } = { position: -1n }] = await runtime.status();
  expect(position).toBe(3n);
});

test('an error of PostgreSQL that quotes a value is reported by its SQLSTATE only', async () => {
  const projection = parcels('dead-letter');
  const runtime = await start([projection]);
  await append(runtime, 'a', sent('tenant-1', 'T-1', 200));
  const options = { ...runtime, readSchema: 'read_models', projection };
  const [letter] = await until(async () => {
    const kept = await listDeadLetters(options).catch(() => []);
    return kept.length > 0 && kept;
  });
  expect(letter?.error?.message).toContain('PostgreSQL reports SQLSTATE 22P02.');
  expect(JSON.stringify(letter?.error)).not.toMatch(/T-1|tenant-1/);
  // A trigger chooses SQLSTATE and message. Only the messages of constraints are known to quote nothing.
  const raised = new RefoldError('DATABASE_ERROR', 'T-1 is too heavy', { sqlState: '23514' });
  expect(refusalOf(projection, raised).reason).toBe('PostgreSQL reports SQLSTATE 23514.');
});

test.each([
  'async',
  'inline',
] as const)('skipped rows are counted and logged, and the count belongs to the table: %s', async (mode) => {
  const projection = parcels('skip', mode);
  const runtime = await start([projection]);
  const untilLive = () => until(async () => mode === 'async' || (await runtime.status())[0]?.inline === 'live');
  await caughtUp(runtime);
  await untilLive();
  await append(runtime, 'a', sent('tenant-1', 'T-1'), weighed(0), weighed(2), weighed(-1));
  await caughtUp(runtime);
  expect(await rows(runtime)).toEqual([{ parcel_id: 'a', tracking: 'T-1', weight: 2 }]);
  expect((await runtime.status())[0]?.eventsSkipped).toBe(2n);
  expect(await createRuntimeMetrics(runtime).metrics()).toContain(
    'refold_skipped_events_total{projection="parcel",version="1"} 2',
  );
  // An append is one line; a processor finds each event by itself.
  const expected = mode === 'inline' ? [2] : [1, 1];
  const skips = () => logged().filter(({ msg }) => /parcel@1: \d events skipped\. .*has_weight/.test(msg));
  await until(() => skips().length === expected.length); // a processor logs them after the commit
  expect(skips().map(({ skipped }) => skipped)).toEqual(expected);
  const step = { actor: 'ann', reason: 'again' };
  await requestRebuild(runtime.db, projection, 'read_models', step);
  await rebuilt(runtime);
  expect((await runtime.status())[0]?.eventsSkipped).toBe(2n);
  // A snapshot's rows lack them, too.
  await takeSnapshot({ ...runtime, readSchema: 'read_models', name: 'parcel', version: 1 }, step);
  await append(runtime, 'a', weighed(-4));
  await requestRebuild(runtime.db, projection, 'read_models', step, { log: runtime.log, snapshot: 'latest' });
  await rebuilt(runtime);
  expect((await runtime.status())[0]?.eventsSkipped).toBe(3n);
  expect(await verifyVersion({ ...runtime, readSchema: 'read_models', projection })).toMatchObject({ differences: 0 });
});

test.each([
  ['skip', 'async'],
  ['skip', 'inline'],
  ['dead-letter', 'async'],
  ['dead-letter', 'inline'],
] as const)('a verification, an audit and a past state leave out rows that the database refused: %s, %s', async (policy, mode) => {
  const projection = parcels(policy, mode);
  const runtime = await start([projection]);
  await caughtUp(runtime);
  await until(async () => mode === 'async' || (await runtime.status())[0]?.inline === 'live');
  await append(runtime, 'a', sent('tenant-1', 'T-1'));
  // A taken value refuses the append of an inline version.
  await append(runtime, 'b', sent('tenant-1', 'T-2'));
  await append(runtime, 'b', mode === 'async' ? relabelled('T-1') : weighed(0));
  await append(runtime, 'b', weighed(7));
  await append(runtime, 'c', mode === 'async' ? sent('tenant-1', 'T-1', 3) : sent('tenant-1', 'T-3', 0));
  await caughtUp(runtime);
  const found = [
    { parcel_id: 'a', tracking: 'T-1', weight: 1 },
    { parcel_id: 'b', tracking: 'T-2', weight: policy === 'skip' ? 7 : 1 },
  ];
  expect(await rows(runtime)).toEqual(found);
  const options = { ...runtime, readSchema: 'read_models', projection };
  expect(await verifyVersion(options)).toMatchObject({ rowsCompared: 2, differences: 0 });
  expect(
    await auditVersion({ ...options, oneOf: 1, round: 0n, share: 1, signal: new AbortController().signal }),
  ).toMatchObject({
    rowsCompared: 2,
    differences: 0,
  });
  const history = createRowHistory(runtime.db, runtime.db);
  const past = await history(runtime.versions.stored(projection), ['b']);
  expect(past.map(({ row }) => [row?.tracking, row?.weight])).toEqual(
    policy === 'skip'
      ? [
          ['T-2', 1],
          ['T-2', 7],
        ]
      : [['T-2', 1]],
  );
  expect(await history(runtime.versions.stored(projection), ['c'])).toEqual([]);
});
