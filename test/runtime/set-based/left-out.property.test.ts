import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEvents,
  defineProjection,
  type GlobalPosition,
  globalPosition,
  type Projection,
  t,
} from '../../../src/index.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  retryDeadLetters,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { changePartitions } from '../../../src/store/processors/partitions.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { effort } from '../../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let database: TestDatabase;
let db: Database;
let run = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  await createReadSchema(db, 'read_models');
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

type Policy = 'stop' | 'skip' | 'dead-letter';
interface Sale {
  readonly till: string;
  readonly shop: string;
  readonly amount: string;
}

/** Each run has a family of its own, so that its events are all that its projection reads. */
const sales = (number: number) =>
  defineEvents(`sale_${number}`, { Sold: z.object({ shop: z.string(), amount: z.string() }) });

/**
 * Sales by till and by shop. The SQL fails on 'much'. The table refuses a 13 in a till's row, and a 14 in a shop's row, forever: see the rule in
 * docs/refused-rows.md.
 */
function turnover(events: ReturnType<typeof sales>, policy: Policy, fixed = false): Projection {
  const amount = fixed
    ? `case payload->>'amount' when 'much' then 100 else (payload->>'amount')::int end`
    : `(payload->>'amount')::int`;
  return defineProjection({
    name: 'turnover',
    version: 1,
    events,
    table: { id: t.text().primaryKey(), sold: t.integer(), amount: t.bigint(), refused: t.boolean() },
    key: ({ streamId, payload }) => [streamId, payload.shop],
    onError: policy,
    evolveSql: {
      events: ['Sold'],
      rows: `
        with sale as (
          select stream_id as id, ${amount} as amount, 13 as refused from batch
          union all
          select payload->>'shop', ${amount}, 14 from batch
        )
        select id, count(*) as sold, sum(amount) as amount, bool_or(amount = refused) as refused
        from sale
        group by id`,
      merge: { sold: 'add', amount: 'add', refused: { sql: 'old.refused or new.refused' } },
    },
  });
}

const history = fc.array(
  fc.record({
    till: fc.constantFrom('till-1', 'till-2', 'till-3'),
    shop: fc.constantFrom('shop-1', 'shop-2'),
    amount: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('1', '2', '3') },
      { weight: 1, arbitrary: fc.constantFrom('much', '13', '14') },
    ),
  }),
  { minLength: 1, maxLength: 25 },
);

/** One owner of a partition folds some positions, and is then killed; or the number of partitions changes. */
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ partition: fc.nat({ max: 3 }), size: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ partitions: fc.integer({ min: 1, max: 3 }) }) },
);
const plan = fc
  .tuple(fc.record({ partitions: fc.integer({ min: 1, max: 3 }) }), fc.array(step, { maxLength: 25 }))
  .map(([first, steps]) => [first, ...steps]);
type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

interface Outcome {
  readonly rows: readonly unknown[];
  /** Key, number of the event, and why it is left out, in the order of the keys. */
  readonly leftOut: readonly (readonly [key: string, event: number, why: string])[];
  readonly stoppedAt: number | null;
}

const failsFor = ({ amount }: Sale, id: string) =>
  amount === 'much' || amount === (id.startsWith('till') ? '13' : '14');

/** The rule: each event is folded by itself into each of its rows. */
function oneByOne(all: readonly Sale[], policy: Policy, failing = failsFor): Outcome {
  const rows = new Map<string, { sold: number; amount: bigint }>();
  const leftOut: [string, number, string][] = [];
  const blocked = new Set<string>();
  for (const [index, sale] of all.entries()) {
    const ids = [sale.till, sale.shop];
    if (policy === 'stop' && ids.some((id) => failing(sale, id))) return { ...outcome(rows, []), stoppedAt: index };
    for (const id of ids) {
      if (blocked.has(id)) leftOut.push([id, index, 'waits']);
      else if (failing(sale, id)) {
        leftOut.push([id, index, policy === 'skip' ? 'skipped' : 'failed']);
        if (policy === 'dead-letter') blocked.add(id);
      } else {
        const before = rows.get(id) ?? { sold: 0, amount: 0n };
        const amount = sale.amount === 'much' ? 100n : BigInt(sale.amount);
        rows.set(id, { sold: before.sold + 1, amount: before.amount + amount });
      }
    }
  }
  return outcome(rows, leftOut);
}

const inOrder = (leftOut: Outcome['leftOut']) =>
  leftOut.toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : a[0] === b[0] ? a[1] - b[1] : 1));

function outcome(rows: ReadonlyMap<string, object>, leftOut: Outcome['leftOut']): Outcome {
  const sorted = [...rows].map(([id, row]) => ({ id, ...row })).sort((a, b) => (a.id < b.id ? -1 : 1));
  return { rows: sorted, leftOut: inOrder(leftOut), stoppedAt: null };
}

interface Scene {
  /** Before its first event. */
  readonly start: GlobalPosition;
  readonly log: EventLog;
  readonly projection: Projection;
  readonly positions: readonly bigint[];
}

async function createScene(all: readonly Sale[], policy: Policy): Promise<Scene> {
  const events = sales(++run);
  const log = createEventLog(db, [events]);
  const projection = turnover(events, policy);
  const start = await log.horizon();
  const positions: bigint[] = [];
  for (const { till, shop, amount } of all) {
    const { position } = await log.append({
      family: events,
      streamId: till,
      events: [{ type: 'Sold', payload: { shop, amount } }],
    });
    positions.push(position);
  }
  await database.administer('delete from refold.projections'); // no application does
  await createTable(projection);
  await insertVersions(db, {
    name: 'turnover',
    version: 1,
    tableSchema: 'read_models',
    tableName: projection.tableName,
    tableFingerprint: projection.tableFingerprint,
    codeFingerprint: '',
    partitions: 1,
    definition: { columns: [], keyColumns: [], filter: [], graphql: projection.graphql },
  });
  await goBack(start);
  return { start, log, projection, positions };
}

async function createTable(projection: Projection): Promise<void> {
  const table = createReadTable(projection, 'read_models');
  await table.drop(db);
  await table.create(db);
  await db.query({
    text: `alter table read_models.${projection.tableName} add constraint accepted check (not refused)`,
  });
}

/** The fold begins before a position. */
async function goBack(to: GlobalPosition): Promise<void> {
  await db.query({
    text: 'update refold.processors set checkpoint = $1, floors = null, epoch = epoch + 1',
    values: [to],
  });
}

const partitions = async () => (await readRegistry(db))[0]?.partitions ?? [];

/** Folds by a plan, and then to the end, unless the plan is all. @returns the positions of the events that stopped it */
async function foldBy({ log, projection }: Scene, steps: Plan, toTheEnd = true): Promise<bigint[]> {
  const horizon = await log.horizon();
  const failures: bigint[] = [];
  const goOn = async (partition: number, size: bigint) => {
    const claim = await claimProcessor(db, { kind: 'processor', name: 'turnover', version: 1, partition }, 'test');
    const processor = createSetBasedProcessor({
      db,
      log,
      readSchema: 'read_models',
      projection,
      fold: projection.sqlFold ?? expect.unreachable(),
      claim,
      state: 'active',
      freeze: true,
      logger: pino({ level: 'silent' }),
      onCaughtUp: async () => 'active',
    });
    const end = claim.checkpoint + size < horizon ? globalPosition(claim.checkpoint + size) : horizon;
    await processor.process({ after: claim.checkpoint, upTo: end, horizon: end, events: [] });
    if (processor.failure) failures.push(BigInt(String(processor.failure.fields.position)));
  };
  for (const one of steps) {
    if ('partitions' in one) await db.transaction((tx) => changePartitions(tx, 'turnover', 1, one.partitions));
    else await goOn(one.partition % (await partitions()).length, BigInt(one.size));
  }
  for (const { partition } of toTheEnd ? await partitions() : []) await goOn(partition, horizon);
  return failures;
}

async function found({ projection, positions }: Scene, stopped: readonly bigint[] = []): Promise<Outcome> {
  const rows = await db.query<{ id: string }>({
    text: `select id, sold, amount from read_models.${projection.tableName} order by id`,
  });
  const leftOut = await db.query<{ key: readonly string[] | null; position: bigint; why: string }>({
    text: `
      select key, position, case when error is null then 'waits' else 'failed' end as why
      from refold.dead_letters where table_name = $1
      union all
      select key, position, 'skipped' from refold.skips where table_name = $1`,
    values: [projection.tableName],
  });
  const number = (position: bigint) => positions.indexOf(position);
  const last = stopped.at(-1);
  return {
    rows,
    leftOut: inOrder(leftOut.map(({ key, position, why }) => [String(key?.[0]), number(position), why])),
    stoppedAt: last === undefined ? null : number(last),
  };
}

test('with stop, everything before the failing event is in the table, in batches of any size', async () => {
  await fc.assert(
    fc.asyncProperty(history, plan, async (all, steps) => {
      const scene = await createScene(all, 'stop');
      // A partition stops only at events of its own rows, so they come to different ends.
      const alone = steps.filter((one) => !('partitions' in one));
      expect(await found(scene, await foldBy(scene, alone))).toEqual(oneByOne(all, 'stop'));
    }),
    { numRuns: effort(40, 10) },
  );
});

test.each([
  'skip',
  'dead-letter',
] as const)('the same events are left out of the same rows, in batches of any size, in any number of partitions and after any kill: %s', async (policy) => {
  await fc.assert(
    fc.asyncProperty(history, plan, plan, async (all, steps, moreSteps) => {
      const scene = await createScene(all, policy);
      const { log, projection } = scene;
      const verify = () => verifyVersion({ db, log, readSchema: 'read_models', projection });
      await foldBy(scene, steps, false);
      expect(await verify()).toMatchObject({ differences: 0, samples: [] });
      await foldBy(scene, []);
      const expected = oneByOne(all, policy);
      expect(await found(scene)).toEqual(expected);
      expect(await verify()).toMatchObject({ differences: 0, samples: [] });
      if (policy === 'skip') {
        // With one partition, an event counts once, on however many rows it failed.
        const skipped = new Set(expected.leftOut.map(([, event]) => event)).size;
        if (steps.every((one) => !('partitions' in one) || one.partitions === 1))
          expect((await readRegistry(db))[0]?.eventsSkipped).toBe(BigInt(skipped));
        return;
      }
      const options = { db, log, readSchema: 'read_models', projection };
      const reason = { actor: 'ann', reason: 'test' };
      if (expected.leftOut.length > 0) {
        // The code is as before, so the same letters remain.
        expect(await retryDeadLetters(options, reason)).toMatchObject({ folded: 0, left: expected.leftOut.length });
        expect(await found(scene)).toEqual(expected);
        // Discarding all of them folds what can be folded, as if the failing events had not been.
        while ((await listDeadLetters(options)).length > 0) await discardDeadLetters(options, reason);
      }
      const without = { ...oneByOne(all, 'skip'), leftOut: [] };
      expect(await found(scene)).toEqual(without);
      expect(await verify()).toMatchObject({ differences: 0, samples: [] });
      // A fold of the whole log leaves out what was discarded.
      await createTable(projection);
      await goBack(scene.start);
      await foldBy(scene, moreSteps);
      expect(await found(scene)).toEqual(without);
    }),
    { numRuns: effort(40, 10) },
  );
});

test('with fixed code, a retry folds what waits, as if nothing had ever failed', async () => {
  await fc.assert(
    fc.asyncProperty(history, plan, async (all, steps) => {
      const scene = await createScene(all, 'dead-letter');
      await foldBy(scene, steps);
      await db.query({ text: `alter table read_models.${scene.projection.tableName} drop constraint accepted` });
      const fixed = turnover(sales(run), 'dead-letter', true);
      const options = { db, log: scene.log, readSchema: 'read_models', projection: fixed };
      const letters = (await listDeadLetters(options)).length;
      if (letters > 0)
        expect(await retryDeadLetters(options, { actor: 'ann', reason: 'fixed' })).toEqual({
          folded: letters,
          discarded: 0,
          left: 0,
        });
      expect(await found(scene)).toEqual(oneByOne(all, 'dead-letter', () => false));
    }),
    { numRuns: effort(40, 10) },
  );
});
