import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { beginning } from '../../../src/events/global-position.ts';
import {
  defineConfig,
  defineEvents,
  defineProjection,
  type ErrorPolicy,
  globalPosition,
  type Projection,
  type RecordedEvent,
  type RefoldError,
  type RetryRule,
  t,
} from '../../../src/index.ts';
import { listDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createRuntimeMetrics } from '../../../src/runtime/monitoring/metrics.ts';
import { type BuildProgress, createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const parcel = defineEvents('parcel', { Sent: z.object({ to: z.string() }) });
const quick: RetryRule = { times: Number.POSITIVE_INFINITY, first: 5, maxPause: 20 };

type Form = 'evolve' | 'evolveSql';

/** A trigger of `setUp` refuses a row until the place of the parcel is known. */
function parcels(form: Form, onError: ErrorPolicy, evolve?: (to: string) => string): Projection {
  const common = {
    name: 'parcel',
    version: 1,
    events: parcel,
    table: { parcelId: t.text().primaryKey(), place: t.text() },
    key: (event: RecordedEvent) => event.streamId,
    onError,
    async setUp({ query, table }: { query(text: string): Promise<unknown>; table: string }) {
      await query('create table if not exists read_models.places (place text primary key)');
      await query(`
        create or replace function read_models.expect_place() returns trigger language plpgsql as $$
        begin
          if not exists (select from read_models.places where place = new.place) then
            raise check_violation using message = 'the place is unknown';
          end if;
          return new;
        end $$`);
      await query(`
        create trigger expect_place before insert or update on ${table}
        for each row execute function read_models.expect_place()`);
    },
  } as const;
  if (form === 'evolve')
    return defineProjection({
      ...common,
      evolve: { Sent: (_, { payload }) => ({ place: evolve?.(payload.to) ?? payload.to }) },
    });
  return defineProjection({
    ...common,
    evolveSql: {
      events: ['Sent'],
      rows: `select stream_id as parcel_id, payload ->> 'to' as place from batch`,
      merge: { place: 'last' },
    },
  });
}

let database: TestDatabase;
const running = new Set<Runtime>();
let lines: { readonly msg: string; readonly attempt?: number }[];

beforeEach(async () => {
  database = await createTestDatabase();
  lines = [];
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
  await database.drop();
});

async function start(projection: Projection, maintain = true): Promise<Runtime> {
  const runtime = await startRuntime({
    config: defineConfig({ projections: [projection], runtime: { polling: { min: 10, max: 50 } } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain,
    logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

/** Each parcel has a stream of its own. Returns the position of the last. */
async function send({ log }: Runtime, ...places: readonly string[]): Promise<bigint> {
  let last = 0n;
  for (const to of places) {
    const events = [{ type: 'Sent', payload: { to } }] as const;
    last = (await log.append({ family: parcel, streamId: `to ${to}`, events })).position;
  }
  return last;
}
const open = (...places: readonly string[]) =>
  database.administer(`insert into read_models.places values ${places.map((place) => `('${place}')`).join()}`);
const versionOf = async (runtime: Runtime) => {
  const [version] = await runtime.status();
  if (!version) throw new Error('no version');
  return version;
};
async function caughtUp(runtime: Runtime): Promise<void> {
  const head = await runtime.log.horizon();
  await until(async () => {
    const { state, position, rebuild } = await versionOf(runtime);
    return state === 'active' && position >= head && rebuild === null;
  });
}
const placesOf = async ({ db }: Runtime) =>
  (await db.query<{ place: string }>({ text: 'select place from read_models.parcel order by place' })).map(
    ({ place }) => place,
  );

const policies: readonly (readonly [Form, ErrorPolicy['policy']])[] = [
  ['evolve', 'stop'],
  ['evolve', 'skip'],
  ['evolve', 'dead-letter'],
  ['evolveSql', 'stop'],
  ['evolveSql', 'skip'],
  ['evolveSql', 'dead-letter'],
];

test.each(
  policies,
)('a row that the database refuses for a while is tried again until it is accepted: %s, %s', async (form, policy) => {
  const projection = parcels(form, { policy, retries: [quick] });
  const runtime = await start(projection);
  await caughtUp(runtime);
  await open('Bergen', 'Narvik');
  const position = await send(runtime, 'Bergen', 'Oslo', 'Narvik', 'Tromso');
  for (const [place, at] of [
    ['Oslo', position - 2n],
    ['Tromso', position],
  ] as const) {
    const { retrying } = await until(async () => {
      const version = await versionOf(runtime);
      return Number(version.retrying?.attempts) > 2 && version.retrying?.position === at.toString() && version;
    });
    expect(retrying?.message).toMatch(/^parcel@1: the database refuses .*the place is unknown/);
    await open(place);
  }
  await caughtUp(runtime);
  expect(await placesOf(runtime)).toEqual(['Bergen', 'Narvik', 'Oslo', 'Tromso']);
  const version = await versionOf(runtime);
  expect(version).toMatchObject({ retrying: null, eventsSkipped: 0n, deadLetters: 0, error: null });
  expect(version.retries).toBeGreaterThanOrEqual(6n);
  expect(await createRuntimeMetrics(runtime).metrics()).toContain(
    `refold_event_retries_total{projection="parcel",version="1"} ${version.retries}`,
  );
});

test.each(
  policies,
)('the policy applies when the retries are over, and other rows are written: %s, %s', async (form, policy) => {
  const projection = parcels(form, { policy, retries: [{ times: 3, first: 4, factor: 2, maxPause: 10, jitter: 0 }] });
  const runtime = await start(projection);
  await caughtUp(runtime);
  await open('Bergen', 'Narvik');
  await send(runtime, 'Bergen', 'Oslo', 'Narvik');
  if (policy === 'stop') {
    const error = await until(async () => (await versionOf(runtime)).error);
    expect(error.message).toContain('the place is unknown');
    expect(await placesOf(runtime)).toEqual(['Bergen']);
  } else {
    await caughtUp(runtime);
    expect(await placesOf(runtime)).toEqual(['Bergen', 'Narvik']);
    const { eventsSkipped, deadLetters } = await versionOf(runtime);
    expect([eventsSkipped, deadLetters]).toEqual(policy === 'skip' ? [1n, 0] : [0n, 1]);
  }
  expect((await versionOf(runtime)).retries).toBe(3n);
  const tried = lines.filter(({ msg }) => msg.includes('Trying again in'));
  expect(tried.map(({ attempt, msg }) => [attempt, /in (\d+) ms/.exec(msg)?.[1]])).toEqual([
    [1, '4'],
    [2, '8'],
    [3, '10'],
  ]);
});

test.each([
  'stop',
  'skip',
  'dead-letter',
] as const)('evolve is tried again only by a rule that names it: %s', async (policy) => {
  let broken = true;
  let calls = 0;
  const evolve = (to: string) => {
    if (to !== 'Oslo') return to;
    calls++;
    if (broken) throw new Error('no rates yet');
    return to;
  };
  const named = (error: unknown) => (error as RefoldError).cause?.toString() === 'Error: no rates yet';
  const runtime = await start(parcels('evolve', { policy, retries: [{ ...quick, on: named }] }, evolve));
  await caughtUp(runtime);
  await open('Bergen', 'Oslo', 'Narvik');
  await send(runtime, 'Bergen', 'Oslo', 'Narvik');
  const { message } = await until(async () => (await versionOf(runtime)).retrying);
  expect(message).toMatch(/evolve of 'Sent' failed at position \d+ .*no rates yet/);
  await until(() => calls > 5);
  expect(await placesOf(runtime)).toEqual(['Bergen']);
  broken = false;
  await caughtUp(runtime);
  expect(await placesOf(runtime)).toEqual(['Bergen', 'Narvik', 'Oslo']);
  expect(await versionOf(runtime)).toMatchObject({ eventsSkipped: 0n, deadLetters: 0 });
});

test.each([
  'stop',
  'skip',
  'dead-letter',
] as const)('a rule for all errors does not try evolve again: %s', async (policy) => {
  const fails = () => {
    throw new Error('a mistake');
  };
  const runtime = await start(parcels('evolve', { policy, retries: [quick] }, fails));
  await send(runtime, 'Bergen');
  await until(async () => {
    const { error, eventsSkipped, deadLetters } = await versionOf(runtime);
    return error !== null || eventsSkipped > 0n || deadLetters > 0;
  });
  expect((await versionOf(runtime)).retries).toBe(0n);
});

test.each([
  'evolve',
  'evolveSql',
] as const)('a process that stops during a pause ends at once, and the next one goes on with the event: %s', async (form) => {
  const projection = parcels(form, { policy: 'skip', retries: [{ ...quick, first: 3_600_000, maxPause: 3_600_000 }] });
  const first = await start(projection);
  await caughtUp(first);
  await open('Bergen');
  await send(first, 'Bergen', 'Oslo');
  await until(async () => (await versionOf(first)).retrying);
  await stop(first);
  await open('Oslo');
  const second = await start(projection);
  await caughtUp(second);
  expect(await placesOf(second)).toEqual(['Bergen', 'Oslo']);
});

test.each(['evolve', 'evolveSql'] as const)('a build and a rebuild try an event again, too: %s', async (form) => {
  const projection = parcels(form, { policy: 'skip', retries: [quick] });
  const writer = await start(projection);
  await caughtUp(writer);
  await open('Bergen', 'Oslo');
  await send(writer, 'Bergen', 'Oslo');
  await caughtUp(writer);
  await database.administer(`delete from read_models.places where place = 'Oslo'`);
  await requestRebuild(writer.db, projection, 'read_models', { actor: 'ann', reason: 'again' });
  await until(() => lines.some(({ msg, attempt }) => msg.includes('Trying again in') && Number(attempt) > 2));
  await open('Oslo');
  await caughtUp(writer);
  expect(await placesOf(writer)).toEqual(['Bergen', 'Oslo']);
  expect((await versionOf(writer)).eventsSkipped).toBe(0n);
});

test.each([
  'evolve',
  'evolveSql',
] as const)('the transaction that completes a build holds no locks during a pause: it ends, and the event is tried again outside of it: %s', async (form) => {
  const projection = parcels(form, { policy: 'skip', retries: [quick] });
  const { name, version, sqlFold, filter } = projection;
  const runtime = await start(projection, false);
  const { db, log } = runtime;
  await open('Bergen');
  const horizon = globalPosition(await send(runtime, 'Bergen'));
  const options = {
    db,
    log,
    projection,
    claim: await claimProcessor(db, { kind: 'processor', name, version, partition: 0 }, 'test'),
    readSchema: 'read_models',
    state: 'building',
    freeze: true,
    logger: pino({ level: 'silent' }),
    async onCaughtUp({ goal, finish }: BuildProgress) {
      const upTo = globalPosition(await send(runtime, 'Oslo'));
      const { events } = await log.readAll({ after: goal, upTo, filter, limit: 10 });
      await db.transaction((tx) => finish(tx, events, upTo));
      return 'active' as const;
    },
  } as const;
  const processor = sqlFold
    ? createSetBasedProcessor({ ...options, fold: sqlFold })
    : createProjectionProcessor(options);
  const page = await log.readAll({ after: beginning, upTo: horizon, filter, limit: 10 });
  await expect(processor.process({ ...page, after: beginning, horizon })).rejects.toMatchObject({
    code: 'PROCESSOR_FENCED',
    message: 'parcel@1: one of its last events is tried again first.',
  });
  expect(await placesOf(runtime)).toEqual(['Bergen']);
  expect((await versionOf(runtime)).eventsSkipped).toBe(0n);
});

test.each([
  'evolve',
  'evolveSql',
] as const)('a failing onSkip is tried again before the checkpoint moves: %s', async (form) => {
  const skipped: bigint[] = [];
  let failures = 3;
  const runtime = await start(
    parcels(form, {
      policy: 'skip',
      retries: [{ on: (error) => String(error).includes('mail server'), ...quick }],
      async onSkip({ event }) {
        if (failures-- > 0) throw new Error('the mail server is away');
        skipped.push(event.position);
      },
    }),
  );
  await caughtUp(runtime);
  await open('Bergen', 'Narvik');
  const position = await send(runtime, 'Bergen', 'Oslo', 'Narvik');
  await caughtUp(runtime);
  expect(await placesOf(runtime)).toEqual(['Bergen', 'Narvik']);
  expect(skipped).toEqual([position - 1n]);
  expect((await versionOf(runtime)).retries).toBe(3n);
});

test('dead letters after retries are retried by an operator as ever', async () => {
  const projection = parcels('evolve', { policy: 'dead-letter', retries: [{ times: 1, first: 1 }] });
  const runtime = await start(projection);
  await caughtUp(runtime);
  await send(runtime, 'Oslo');
  await caughtUp(runtime);
  expect(await listDeadLetters({ ...runtime, readSchema: 'read_models', projection })).toHaveLength(1);
});

test('retries are refused with mode inline, and wrong rules are refused', () => {
  const declared = (options: { mode?: 'inline'; onError: ErrorPolicy }) => () =>
    defineProjection({
      name: 'parcel',
      version: 1,
      events: parcel,
      table: { parcelId: t.text().primaryKey() },
      key: (event) => event.streamId,
      evolve: { Sent: () => ({}) },
      ...options,
    });
  expect(declared({ mode: 'inline', onError: { policy: 'skip', retries: [quick] } })).toThrow(
    `parcel@1: onError.retries waits before an event is tried again, and with mode 'inline' an append would have to wait. Leave 'retries' out, or use mode 'async'.`,
  );
  expect(declared({ onError: { policy: 'skip', retries: [{ times: -1 }] } })).toThrow(`'times' is a whole number`);
  expect(declared({ mode: 'inline', onError: { policy: 'skip' } })).not.toThrow();
});
