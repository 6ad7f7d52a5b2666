import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  ConcurrencyConflict,
  defineEvents,
  defineProjection,
  defineState,
  type RecordedEvent,
  t,
} from '../../../src/index.ts';
import { createSnapshotWriter } from '../../../src/runtime/commands/snapshot-writer.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createSetMerge } from '../../../src/store/set-based/set-merge.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { all } from './families.ts';

const { db } = await databaseOfFile();
let runs = 0;

beforeAll(async () => {
  await createReadSchema(db, 'read_models');
});

/** The names of one deployment, the newest last. */
interface Names {
  readonly family: readonly string[];
  readonly moved: readonly string[];
  readonly paid: readonly string[];
}

const payload = z.object({ n: z.int() });

/** One deployment: the same declarations under its names. */
function deploy({ family, moved, paid }: Names, run: number) {
  const [name, movedType, paidType] = [family, moved, paid].map((names) => names.at(-1)) as [string, string, string];
  const guest = defineEvents(
    name,
    { [movedType]: payload, [paidType]: payload, Left: payload },
    {
      was: family.slice(0, -1),
      types: { [movedType]: { was: moved.slice(0, -1) }, [paidType]: { was: paid.slice(0, -1) } },
      upcasters: { [paidType]: [({ n }: { n: number }) => ({ n })] }, // payloads of version 2, so set-based folds get them as JSON
    },
  );
  const state = defineState(
    guest,
    () => ({ seen: [] as string[] }),
    {
      [movedType]: (before, { payload: { n } }) => ({ seen: [...before.seen, `moved ${n}`] }),
      [paidType]: (before, { payload: { n } }) => ({ seen: [...before.seen, `paid ${n}`] }),
    },
    { snapshotEvery: 2 },
  );
  const stays = defineProjection({
    name: `stays_${run}`,
    version: 1,
    events: guest,
    table: { guestId: t.text().primaryKey(), moves: t.integer(), paid: t.integer() },
    evolveSql: {
      events: [movedType, paidType],
      rows: `
        select
          stream_id as guest_id,
          count(*) filter (where family = '${name}' and type = '${movedType}')::int as moves,
          coalesce(sum((payload->>'n')::int) filter (where family = '${name}' and type = '${paidType}'), 0)::int as paid
        from batch
        group by stream_id`,
      merge: { moves: 'add', paid: 'add' },
    },
  });
  const meaning = { [movedType]: 'moved', [paidType]: 'paid', Left: 'left' };
  const read = ({ family: of, type, streamId, payload: of_ }: RecordedEvent) => {
    expect(of).toBe(name);
    return `${streamId} ${meaning[type] ?? type} ${(of_ as { n: number }).n}`;
  };
  return { guest, movedType, paidType, state, stays, read, log: createEventLog(db, [guest]) };
}

/** The table that a set-based fold of the whole log builds. */
async function folded({ stays, log }: ReturnType<typeof deploy>, upTo: Awaited<ReturnType<EventLog['horizon']>>) {
  await createReadTable(stays, 'read_models').create(db);
  const table = `"read_models"."${stays.tableName}"`;
  const merge = createSetMerge(stays, stays.sqlFold ?? expect.unreachable(), table, db);
  const { events: upcast } = await log.readAll({ after: start, upTo, filter: merge.upcast, limit: 1000 });
  await merge.check(db);
  await merge.run(db, { after: start, upTo, upcast }, { keys: false });
  const rows = await db.query({ text: `select guest_id, moves, paid from ${table} order by guest_id` });
  await db.query({ text: `drop table ${table}` });
  return rows;
}

const start = 0n as Awaited<ReturnType<EventLog['horizon']>>;

const deployments = fc
  .record({
    family: fc.integer({ min: 0, max: 2 }),
    moved: fc.integer({ min: 0, max: 2 }),
    paid: fc.integer({ min: 0, max: 1 }),
  })
  .chain((last) =>
    fc.record({
      last: fc.constant(last),
      // Earlier deployments, each with a prefix of the names.
      earlier: fc.array(
        fc.record({
          family: fc.integer({ min: 0, max: last.family }),
          moved: fc.integer({ min: 0, max: last.moved }),
          paid: fc.integer({ min: 0, max: last.paid }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      appends: fc.array(
        fc.record({
          by: fc.nat(3),
          stream: fc.constantFrom('a', 'b'),
          type: fc.constantFrom('moved', 'paid', 'left'),
        }),
        { minLength: 1, maxLength: 14 },
      ),
    }),
  );

test('deployments that know a family and its types by different names write one log, and read the same in it', async () => {
  await fc.assert(
    fc.asyncProperty(deployments, async ({ last, earlier, appends }) => {
      const run = ++runs;
      const names = (upTo: typeof last): Names => ({
        family: [`visitor_${run}`, `tourist_${run}`, `guest_${run}`].slice(0, upTo.family + 1),
        moved: ['Arrived', 'Came', 'CheckedIn'].slice(0, upTo.moved + 1),
        paid: ['Paid', 'Charged'].slice(0, upTo.paid + 1),
      });
      const apps = [...earlier, last].map((one) => deploy(names(one), run));
      const writer = createSnapshotWriter(db, (error) => expect.unreachable(String(error)));
      const expected: string[] = [];
      for (const [n, { by, stream, type }] of appends.entries()) {
        const app = apps[by % apps.length] ?? expect.unreachable();
        const found = await app.log.stateOf(app.state, stream);
        writer.note(app.state, stream, found)?.write();
        await writer.stop();
        const request = {
          family: app.guest,
          streamId: stream,
          events: [{ type: { moved: app.movedType, paid: app.paidType, left: 'Left' }[type], payload: { n } }],
          expectedVersion: expected.filter((one) => one.startsWith(`${stream} `)).length,
          idempotencyKey: `${run}-${n}`,
        };
        const written = await app.log.append(request);
        expect(written.events.map(app.read)).toEqual([`${stream} ${type} ${n}`]);
        expected.push(`${stream} ${type} ${n}`);
      }
      const stored = await db.query<{ family: string; type: string }>({
        text: `select distinct family, type from refold.events where family like $1`,
        values: [`%\\_${run}`],
      });
      for (const one of stored) {
        expect(one).toMatchObject({ family: `visitor_${run}` });
        expect(['Arrived', 'Paid', 'Left']).toContain(one.type);
      }
      const tables = [];
      for (const app of apps) {
        const upTo = await app.log.horizon();
        expect((await app.log.readAll({ after: start, upTo, limit: 100 })).events.map(app.read)).toEqual(expected);
        expect((await app.log.readTail({ after: start, limit: 100 })).events.map(app.read)).toEqual(expected);
        for (const stream of ['a', 'b']) {
          const own = expected.filter((one) => one.startsWith(`${stream} `));
          expect((await all(app.log.readStream(app.guest, stream))).map(app.read)).toEqual(own);
          expect(await app.log.streamVersion(app.guest, stream)).toBe(own.length);
          const { seen } = (await app.log.stateOf(app.state, stream)).state;
          expect(seen).toEqual(own.map((one) => one.slice(2)).filter((one) => !one.startsWith('left')));
          const halfway = Math.ceil(own.length / 2);
          expect((await app.log.stateOf(app.state, stream, { at: halfway })).version).toBe(halfway);
        }
        const again = await app.log.findAppend(`${run}-0`);
        expect(again?.streams).toMatchObject([{ family: app.guest.name }]);
        expect(again?.events.map(app.read)).toEqual(expected.slice(0, 1));
        tables.push(await folded(app, upTo));
      }
      expect(new Set(tables.map((rows) => JSON.stringify(rows))).size).toBe(1);
    }),
    { numRuns: effort(15, 3) },
  );
});

describe('a family that was renamed', () => {
  const names = { family: ['lodger', 'resident'], moved: ['Arrived', 'CheckedIn'], paid: ['Paid'] };

  test('names itself as declared in conflicts and results', async () => {
    const { guest, log } = deploy(names, ++runs);
    const append = (idempotencyKey: string) =>
      log.append({
        family: guest,
        streamId: 'one',
        events: [{ type: 'CheckedIn', payload: { n: 1 } }],
        expectedVersion: 'no-stream',
        idempotencyKey,
      });
    expect((await append('first')).streams).toEqual([{ family: 'resident', streamId: 'one', version: 1 }]);
    expect(await append('first')).toMatchObject({ duplicate: true, streams: [{ family: 'resident' }] });
    const refused = await append('second').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConcurrencyConflict);
    expect(refused).toMatchObject({ fields: { family: 'resident' } });
  });

  test('reads events that were written under a new type name before the rename was declared', async () => {
    const before = defineEvents('lodger', { CheckedIn: payload });
    await createEventLog(db, [before]).append({
      family: before,
      streamId: 'two',
      events: [{ type: 'CheckedIn', payload: { n: 7 } }],
    });
    const { guest, log, state } = deploy(names, ++runs);
    await log.append({ family: guest, streamId: 'two', events: [{ type: 'CheckedIn', payload: { n: 8 } }] });
    expect((await all(log.readStream(guest, 'two'))).map(({ type }) => type)).toEqual(['CheckedIn', 'CheckedIn']);
    expect((await log.stateOf(state, 'two')).state).toEqual({ seen: ['moved 7', 'moved 8'] });
    const stored = await db.query({ text: `select type from refold.events where stream_id = 'two' order by position` });
    expect(stored).toEqual([{ type: 'CheckedIn' }, { type: 'Arrived' }]);
  });

  test('takes no snapshot of code that does not know a former name', async () => {
    const declare = (was: readonly string[]) => {
      const lodger = defineEvents(
        'boarder',
        { Arrived: payload, Paid: payload },
        was.length > 0 ? { types: { Paid: { was } } } : {},
      );
      const state = defineState(
        lodger,
        () => ({ sum: 0 }),
        { Paid: (before, event) => ({ sum: before.sum + event.payload.n }) },
        { snapshotEvery: 1 },
      );
      return { lodger, state, log: createEventLog(db, [lodger]) };
    };
    const first = defineEvents('boarder', { Charged: payload });
    await createEventLog(db, [first]).append({
      family: first,
      streamId: 'x',
      events: [{ type: 'Charged', payload: { n: 5 } }],
    });
    const undeclared = declare([]);
    const writer = createSnapshotWriter(db, (error) => expect.unreachable(String(error)));
    const found = await undeclared.log.stateOf(undeclared.state, 'x');
    writer.note(undeclared.state, 'x', found)?.write();
    await writer.stop();
    expect(found.state).toEqual({ sum: 0 });
    const declared = declare(['Charged']);
    expect((await declared.log.stateOf(declared.state, 'x')).state).toEqual({ sum: 5 });
  });
});
