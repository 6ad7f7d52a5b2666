import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { lastingFilter } from '../../../src/events/event-names.ts';
import { globalPosition } from '../../../src/events/global-position.ts';
import { type PayloadVersions, payloadVersionsOf } from '../../../src/events/payload-versions.ts';
import { versionUnknown } from '../../../src/events/read-payload.ts';
import {
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type EventFamily,
  type Reactor,
  type ReactorContext,
  type RecordedEvent,
  t,
} from '../../../src/index.ts';
import { isKnownElsewhere, isReadBetter } from '../../../src/runtime/ownership/able-readers.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { unitText } from '../../../src/store/server/processor-unit.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

type Form = 'evolve' | 'evolveSql';

/** The older release counts in euros. */
const inEuros = defineEvents('ledger', {
  Paid: z.object({ euros: z.number() }),
  Refunded: z.object({ euros: z.number() }),
  Noted: z.object({}),
});
/** The newer one counts in cents. */
const inCents = defineEvents(
  'ledger',
  { Paid: z.object({ cents: z.number() }), Refunded: z.object({ euros: z.number() }), Noted: z.object({}) },
  { upcasters: { Paid: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] } },
);
/** The older release, after renames. */
const renamed = defineEvents(
  'account_book',
  { Charged: z.object({ euros: z.number() }), Refunded: z.object({ euros: z.number() }), Noted: z.object({}) },
  { was: ['ledger'], types: { Charged: { was: ['Paid'] } } },
);
/** Another release: of another branch, so it knows nothing of the other change. */
const refundsInCents = defineEvents(
  'ledger',
  { Paid: z.object({ euros: z.number() }), Refunded: z.object({ cents: z.number() }), Noted: z.object({}) },
  { upcasters: { Refunded: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] } },
);

interface Amount {
  readonly cents?: number;
  readonly euros?: number;
}

/** An amount in cents, as a release reads it. */
const centsOf = ({ cents, euros }: Amount) => cents ?? (euros ?? 0) * 100;

function totals(events: EventFamily, form: Form, policy: 'stop' | 'skip' | 'dead-letter' = 'skip') {
  const table = { id: t.text().primaryKey(), cents: t.integer() };
  const options = { name: 'totals', version: 1, events, table } as const;
  const [paid = 'Paid'] = events.types;
  const inSql = (type: string) => ((events.upcasters[type]?.length ?? 0) > 0 ? 'cents' : 'euros');
  const amount = (type: string) =>
    `case type when '${type}' then ${inSql(type) === 'cents' ? '' : '100 * '}coalesce((payload->>'${inSql(type)}')::int, 0) else 0 end`;
  if (form === 'evolveSql')
    return defineProjection({
      ...options,
      onError: policy,
      evolveSql: {
        events: [paid, 'Refunded'],
        rows: `select stream_id as id, sum(${amount(paid)} - ${amount('Refunded')})::int as cents from batch group by stream_id`,
        merge: { cents: 'add' },
      },
    });
  const added = (sign: number) => (row: { cents: number } | null, event: RecordedEvent) => ({
    cents: (row?.cents ?? 0) + sign * centsOf(event.payload as Amount),
  });
  return defineProjection({
    ...options,
    key: (event) => event.streamId,
    evolve: { [paid]: added(1), Refunded: added(-1) },
    onError: policy, // must not apply to an event that another process can read
  });
}

const pay = (family: EventFamily) =>
  defineCommand({
    name: 'pay',
    input: z.object({ id: z.string() }),
    stream: ({ id }) => id,
    state: defineState(family, () => ({ cents: 0 }), {
      Paid: (state, { payload }) => ({ cents: state.cents + centsOf(payload as Amount) }),
    }),
    decide: () => [{ type: 'Noted', payload: {} }],
  });

let database: TestDatabase;
let db: Database;
const running = new Set<Runtime>();

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
  await db.close();
  await database.drop();
});

async function start(
  owner: string,
  family: EventFamily,
  {
    form = 'evolve',
    maintain = true,
    reactors = [],
    policy = 'skip',
  }: { form?: Form; maintain?: boolean; reactors?: Reactor[]; policy?: 'stop' | 'skip' | 'dead-letter' } = {},
) {
  const runtime = await startRuntime({
    config: defineConfig({
      events: [family],
      projections: [totals(family, form, policy)],
      reactors,
      runtime: { polling: { min: 10, max: 50 } },
    }),
    url: database.url,
    owner,
    development: false,
    maintain,
    logger: pino({ level: process.env.LOG ?? 'silent' }),
  });
  running.add(runtime);
  return runtime;
}

const append = (runtime: Runtime, family: EventFamily, type: string, payload: unknown) =>
  runtime.log.append({ family, streamId: 'a', events: [{ type, payload } as never] });

async function cents(): Promise<number | undefined> {
  const rows = await db.query<{ cents: number }>({ text: 'select cents from read_models.totals_v1' });
  return rows[0]?.cents;
}

async function processor() {
  const [found] = await db.query<{ owner: string; status: string; error: { message: string; code: string } | null }>({
    text: 'select owner, status, error from refold.processors',
  });
  return found ?? expect.unreachable();
}

/** Waits for a total, and proves that no other than these was ever there. */
const totalOf = (wanted: number, ...before: (number | undefined)[]) =>
  until(async () => {
    const found = await cents();
    expect([...before, wanted]).toContain(found);
    return found === wanted;
  });

describe.each(['evolve', 'evolveSql'] as const)('%s, while two releases run', (form) => {
  test('a process leaves a version to one that can read more of its events', async () => {
    const old = await start('old', inEuros, { form });
    await append(old, inEuros, 'Paid', { euros: 10 });
    await totalOf(1000, undefined);
    expect(await processor()).toMatchObject({ owner: 'old', status: 'running' });

    const next = await start('new', inCents, { form });
    await append(next, inCents, 'Paid', { cents: 20 });
    await append(old, inEuros, 'Paid', { euros: 1 });
    await totalOf(1120, 1000, 1020);
    expect(await processor()).toMatchObject({ owner: 'new', status: 'running' });
  });

  test('a process leaves a version at an event that only another process can read', async () => {
    const one = await start('one', inCents, { form });
    await append(one, inCents, 'Paid', { cents: 500 });
    await totalOf(500, undefined);
    const other = await start('other', refundsInCents, { form });
    await append(other, refundsInCents, 'Refunded', { cents: 20 });
    await totalOf(480, 500);
    expect(await processor()).toMatchObject({ owner: 'other', status: 'running' });
  });

  test('a version that no process can read stops with the reason, and continues when one can', async () => {
    await start('old', inEuros, { form });
    const gateway = await start('gateway', inCents, { form, maintain: false });
    await append(gateway, inCents, 'Paid', { cents: 1 });
    await append(gateway, inCents, 'Refunded', { euros: 1 });
    const { error } = await until(async () => {
      const found = await processor();
      return found.status === 'stopped' && found;
    });
    expect(error).toMatchObject({
      code: 'PAYLOAD_VERSION_UNKNOWN',
      message:
        "The event 'Paid' of ledger at position 1 has payload version 2; this process knows version 1 only. No running process that declares totals@1 knows it: deploy one.",
    });
    expect(await cents()).toBeUndefined();

    await start('new', inCents, { form });
    await totalOf(-99, undefined, 1);
    expect(await processor()).toMatchObject({ owner: 'new', status: 'running', error: null });
  });

  test('a process that knows the events by new names leaves them to one that knows their payloads', async () => {
    await start('renamed', renamed, { form });
    const gateway = await start('gateway', inCents, { form, maintain: false });
    await append(gateway, inCents, 'Paid', { cents: 30 });
    const { error } = await until(async () => {
      const found = await processor();
      return found.status === 'stopped' && found;
    });
    expect(error?.message).toContain(
      "The event 'Charged' of account_book at position 1 has payload version 2; this process knows version 1 only.",
    );
    await start('new', inCents, { form });
    await totalOf(30, undefined);
    expect(await processor()).toMatchObject({ owner: 'new', status: 'running', error: null });
  });
});

describe('an upcaster that fails', () => {
  const brokenWith = (upcaster: (payload: { euros: number }) => unknown) =>
    defineEvents(
      'ledger',
      { Paid: z.object({ cents: z.number() }), Refunded: z.object({ euros: z.number() }), Noted: z.object({}) },
      { upcasters: { Paid: [upcaster as () => { cents: number }] } }, // its result is wrong in some tests
    );
  const broken = brokenWith(({ euros }) => {
    if (euros === 13) throw new Error('boom');
    return { cents: euros * 100 };
  });

  async function paid(...amounts: number[]) {
    const gateway = await start('gateway', inEuros, { maintain: false });
    for (const euros of amounts) await append(gateway, inEuros, 'Paid', { euros });
  }

  test.each([
    'evolve',
    'evolveSql',
  ] as const)('stops %s at its event, with everything before it written', async (form) => {
    await paid(1, 13, 2);
    await start('worker', broken, { form, policy: 'stop' });
    const { error } = await until(async () => {
      const found = await processor();
      return found.status === 'stopped' && found;
    });
    expect(error).toMatchObject({
      code: 'EVOLVE_FAILED',
      position: '2',
      message: "totals@1: upcast of 'Paid' failed at position 2 (stream 'a', event 2): boom",
    });
    expect(await cents()).toBe(100);
  });

  test.each(['evolve', 'evolveSql'] as const)("is left out of %s by 'skip'", async (form) => {
    await paid(1, 13, 2);
    await start('worker', broken, { form });
    await totalOf(300, undefined, 100);
    expect(await db.query({ text: 'select position from refold.skips' })).toEqual([{ position: 2n }]);
  });

  test("becomes a dead letter of its row by 'dead-letter', and holds back later events of the row", async () => {
    await paid(1, 13, 2);
    await start('worker', broken, { policy: 'dead-letter' });
    const letters = await until(async () => {
      const found = await db.query({ text: 'select position, key, error from refold.dead_letters order by id' });
      return found.length === 2 && found;
    });
    expect(letters).toMatchObject([
      { position: 2n, key: ['a'], error: { message: expect.stringContaining('boom') } },
      { position: 3n, key: ['a'], error: null },
    ]);
    expect(await cents()).toBe(100);
  });

  test('by returning a promise is refused, and says what to do', async () => {
    await paid(1);
    const later = brokenWith(async ({ euros }) => ({ cents: euros * 100 }));
    const { log } = await start('gateway', later, { maintain: false });
    const { value: event } = await log.readStream(later, 'a')[Symbol.asyncIterator]().next();
    expect(() => event.payload).toThrow(
      "An upcaster of 'Paid' of ledger failed at position 1 (stream 'a', payload version 1): it returned a promise, and upcasters are synchronous. Return the payload itself",
    );
  });
});

test('a command on a stream with a payload version that its process does not know is refused', async () => {
  const old = await start('old', inEuros, { maintain: false });
  const next = await start('new', inCents, { maintain: false });
  await append(next, inCents, 'Paid', { cents: 20 });
  await expect(old.execute(pay(inEuros), { id: 'a' })).rejects.toMatchObject({
    code: 'PAYLOAD_VERSION_UNKNOWN',
    fields: { family: 'ledger', type: 'Paid', payloadVersion: 2, known: 1, position: '1', streamId: 'a' },
  });
  expect(await old.log.streamVersion(inEuros, 'a')).toBe(1);
  await next.execute(pay(inCents), { id: 'a' });
  const { value: event } = await old.log.readStream(inEuros, 'a')[Symbol.asyncIterator]().next();
  expect(() => event.payload).toThrow(expect.objectContaining({ code: 'PAYLOAD_VERSION_UNKNOWN' }));
});

test.each([
  ['at an event that its process can not read', 'Paid'],
  ['at an event whose command needs one', 'Refunded'],
])('a reactor stops %s, and continues in another process', async (_, type) => {
  const handled: string[] = [];
  const reactor = (family: EventFamily, by: string) =>
    defineReactor({
      name: 'mails',
      events: family,
      from: 'beginning',
      handle: {
        async [type]({ payload }: RecordedEvent, { execute }: ReactorContext) {
          if (type === 'Refunded') await execute(pay(family), { id: 'a' });
          handled.push(`${by} ${centsOf(payload as Amount)}`);
        },
      },
      onError: 'skip',
    });
  const old = await start('old', inEuros, { reactors: [reactor(inEuros, 'old')] });
  const gateway = await start('gateway', inCents, { maintain: false });
  await append(old, inEuros, type, { euros: 1 });
  await until(() => handled.length === 1);
  await append(gateway, inCents, 'Paid', { cents: 20 });
  if (type === 'Refunded') await append(gateway, inCents, type, { euros: 2 });
  const status = async () => (await gateway.reactors.status())[0];
  await until(async () => (await status())?.state === 'stopped');
  expect(await status()).toMatchObject({ handled: 1n, skipped: 0n });
  expect(handled).toEqual(['old 100']);

  await start('new', inCents, { reactors: [reactor(inCents, 'new')] });
  await until(() => handled.length === 2);
  expect(handled).toEqual(['old 100', type === 'Paid' ? 'new 20' : 'new 200']);
});

const unit = { kind: 'reactor', name: 'mails', version: 0, partition: 0 } as const;

test('which process can read more is decided by all event types that a unit reads, and by the versions of a reactor', () => {
  const filter = [{ family: 'ledger', types: ['Paid', 'Refunded'] }];
  type Known = { readonly ledger?: Record<string, number>; readonly mails?: readonly number[] };
  const known = ({ ledger = {}, mails = [1] }: Known) => ({ payloadVersions: { ledger }, reactorVersions: { mails } });
  const better = (own: Known, other: Known, declares = [unitText(unit)]) =>
    isReadBetter({ unit, filter }, known(own), [{ id: 'other', declares, owns: [], keeps: [], ...known(other) }]);
  expect(better({}, { ledger: { Paid: 2 } })).toBe(true);
  expect(better({ ledger: { Paid: 2 } }, { ledger: { Paid: 2 } })).toBe(false);
  expect(better({}, { ledger: { Noted: 2 } })).toBe(false);
  expect(better({}, { ledger: { Paid: 2 } }, ['another'])).toBe(false);
  expect(better({ ledger: { Refunded: 2 } }, { ledger: { Paid: 2 } })).toBe(false);
  expect(better({ ledger: { Refunded: 2 } }, { ledger: { Paid: 2, Refunded: 2 } })).toBe(true);
  expect(better({}, { mails: [1, 2] })).toBe(true);
  expect(better({ mails: [1, 2] }, {})).toBe(false);
  expect(better({}, { mails: [2] })).toBe(false);
  expect(better({ ledger: { Paid: 2 } }, { mails: [1, 2] })).toBe(false);
  expect(better({ ledger: { Paid: 2 } }, { ledger: { Paid: 2 }, mails: [1, 2] })).toBe(true);
});

test('what a process can read is compared under the names of the log', () => {
  const both = defineEvents(
    'account_book',
    { Charged: z.object({ cents: z.number() }) },
    {
      was: ['ledger'],
      types: { Charged: { was: ['Paid'] } },
      upcasters: { Charged: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] },
    },
  );
  const reads = (family: EventFamily, type: string) =>
    lastingFilter([family], [{ family: family.name, types: [type] }]);
  const another = (payloadVersions: PayloadVersions) => [
    { id: 'other', declares: [unitText(unit)], owns: [], keeps: [], payloadVersions, reactorVersions: {} },
  ];
  const better = (family: EventFamily, type: string, other: EventFamily) =>
    isReadBetter(
      { unit, filter: reads(family, type) },
      { payloadVersions: payloadVersionsOf([family]), reactorVersions: {} },
      another(payloadVersionsOf([other])),
    );
  expect(payloadVersionsOf([both])).toEqual({ ledger: { Paid: 2, Charged: 2 } });
  expect(better(inEuros, 'Paid', both)).toBe(true);
  expect(better(renamed, 'Charged', both)).toBe(true);
  expect(better(renamed, 'Charged', inCents)).toBe(true);
  expect(better(both, 'Charged', inEuros)).toBe(false);
  expect(better(both, 'Charged', inCents)).toBe(false);
  expect(better(inCents, 'Paid', both)).toBe(false);

  const place = { position: globalPosition(1n), streamId: 'a', payloadVersion: 2 };
  const known = (family: EventFamily, type: string, other: EventFamily) =>
    isKnownElsewhere(unit, versionUnknown(family, { ...place, type }), [family], another(payloadVersionsOf([other])));
  expect(known(inEuros, 'Paid', both)).toBe(true);
  expect(known(renamed, 'Charged', inCents)).toBe(true);
  expect(known(renamed, 'Charged', inEuros)).toBe(false);
});
