import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readLostHistory, readNextAnchor } from '../../../src/store/statements/log-anchors.ts';
import { effort } from '../../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { account, deposited } from './families.ts';

const writerCount = 3;

let database: TestDatabase;
let db: Database;
let log: EventLog;
let writers: readonly pg.Client[];

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
  writers = Array.from({ length: writerCount }, () => new pg.Client({ connectionString: database.url }));
  for (const writer of writers) await writer.connect();
});
afterAll(async () => {
  for (const writer of writers) await writer.end();
  await db.close();
  await database.drop();
});

const plays = fc.record({
  steps: fc.array(
    fc.oneof(
      fc.record({
        what: fc.constantFrom('append' as const, 'commit' as const),
        writer: fc.nat({ max: writerCount - 1 }),
      }),
      // To the horizon, or only to a part of the way, as a batch of a processor that is behind.
      fc.record({ what: fc.constant('advance' as const), part: fc.constantFrom(1, 1, 0.5) }),
    ),
    { minLength: 25, maxLength: 40 },
  ),
  /** How many of the last commits are lost. */
  lostCommits: fc.integer({ min: 1, max: 4 }),
});

/** A checkpoint in another database. */
interface Remembered {
  readonly checkpoint: Awaited<ReturnType<EventLog['horizon']>>;
  readonly anchor: string | null;
}

/** As after another start of the server, on which events are counted. */
function ofFormerStart(anchor: string | null): string | null {
  return anchor?.replace(/[^.]*$/, '0') ?? null;
}

test('a checkpoint notices exactly the lost events up to it, whatever the order of the commits', async () => {
  await fc.assert(
    fc.asyncProperty(plays, async ({ steps, lostCommits }) => {
      const open = new Map<number, bigint>();
      /** The positions of each commit, in the order of the commits. */
      const commits: bigint[] = [];
      const remembered: Remembered[] = [{ checkpoint: await log.horizon(), anchor: null }];
      async function commit(writer: number): Promise<void> {
        const position = open.get(writer);
        if (position === undefined) return;
        await writers[writer]?.query('commit');
        open.delete(writer);
        commits.push(position);
      }

      for (const step of steps) {
        const last = remembered.at(-1) as Remembered; // begins with one
        if (step.what === 'append' && !open.has(step.writer)) open.set(step.writer, await append(step.writer));
        if (step.what === 'commit') await commit(step.writer);
        if (step.what === 'advance') {
          const way = Math.round(Number((await log.horizon()) - last.checkpoint) * step.part);
          const to = (last.checkpoint + BigInt(way)) as Remembered['checkpoint'];
          const { anchor } = await readNextAnchor(db, last.anchor, last.checkpoint, to);
          remembered.push({ checkpoint: to, anchor });
        }
      }
      const lost = commits.slice(-lostCommits);
      for (const writer of open.keys()) await writers[writer]?.query('rollback');
      if (lost.length > 0) await lose(lost);

      for (const { checkpoint, anchor } of remembered.slice(1)) {
        const found = await readLostHistory(db, checkpoint, ofFormerStart(anchor));
        expect(found.lost).toBe(lost.some((position) => position <= checkpoint) ? 'other' : null);
      }
    }),
    { numRuns: effort(200, 40) },
  );
});

test('events are not counted again while the server is the same', async () => {
  const from = await log.horizon();
  const { position } = await log.append({ family: account, streamId: 'counted', events: [deposited(1), deposited(2)] });
  const { anchor } = await readNextAnchor(db, null, from, position);
  await lose([position - 1n]);
  expect((await readLostHistory(db, position, anchor)).lost).toBeNull();
  expect((await readLostHistory(db, position, ofFormerStart(anchor))).lost).toBe('other');
});

test('events that were counted are not counted again: the anchor to keep is of the present start', async () => {
  const from = await log.horizon();
  const { position } = await log.append({ family: account, streamId: 'checked', events: [deposited(1)] });
  const { anchor } = await readNextAnchor(db, null, from, position);
  expect(await readLostHistory(db, position, ofFormerStart(anchor))).toMatchObject({ lost: null, checked: anchor });
  for (const short of [null, anchor?.split('.').slice(0, 2).join('.') ?? null])
    expect((await readLostHistory(db, position, short)).checked).toBe(short);
});

test('few events are counted at the head of the log, however many were read before', async () => {
  let remembered: Remembered = { checkpoint: await log.horizon(), anchor: null };
  for (let number = 0; number < 20; number++) {
    const events = [deposited(number), deposited(number)];
    const { position } = await log.append({ family: account, streamId: 'many', events });
    const { anchor } = await readNextAnchor(db, remembered.anchor, remembered.checkpoint, position);
    remembered = { checkpoint: position, anchor };
  }
  const [, , , counted] = remembered.anchor?.split('.') ?? [];
  expect(Number(counted)).toBeLessThanOrEqual(4);
});

test('after a version is built while nothing is appended, the next event settles all that it has read', async () => {
  const from = await log.horizon();
  const events = Array.from({ length: 30 }, (_, number) => deposited(number));
  const { position: end } = await log.append({ family: account, streamId: 'built', events });
  let remembered: Remembered = { checkpoint: from, anchor: null };
  for (let batch = 1n; batch <= 3n; batch++) {
    const to = (end - 30n + batch * 10n) as Remembered['checkpoint'];
    remembered = {
      checkpoint: to,
      anchor: (await readNextAnchor(db, remembered.anchor, remembered.checkpoint, to)).anchor,
    };
  }
  const { position } = await log.append({ family: account, streamId: 'built', events: [deposited(1)] });
  const { anchor } = await readNextAnchor(db, remembered.anchor, end, position);
  expect(anchor?.split('.').slice(2, 4)).toEqual([end.toString(), '1']);
});

test('the anchor of an earlier version of Refold, and of an unknown position, is continued from there', async () => {
  const from = await log.horizon();
  const { position } = await log.append({ family: account, streamId: 'former', events: [deposited(1)] });
  const short = `${from}.00000000`;
  for (const previous of [null, short, '1.00000000.0.0.1.0.1.1']) {
    const { anchor } = await readNextAnchor(db, previous, from, position);
    expect(anchor?.split('.').slice(2, 4)).toEqual([from.toString(), '1']);
  }
  expect((await readLostHistory(db, from, short)).lost).toBe('other');
});

/** What a fail-over does to the log. Without the triggers: events are immutable. */
function lose(positions: readonly bigint[]): Promise<void> {
  return database.administer(`
    set session_replication_role = replica;
    delete from refold.events where position in (${positions})`);
}

/** Appends in a transaction that stays open. */
async function append(writer: number): Promise<bigint> {
  const client = writers[writer] as pg.Client; // one for each
  await client.query('begin');
  const { position } = await log.append(
    { family: account, streamId: `stream ${crypto.randomUUID()}`, events: [deposited(1)] },
    {
      query: async ({ text, values }) => {
        const { rows } = await client.query({
          text,
          values: [...(values ?? [])],
          types: db.pool.options.types,
        });
        return rows;
      },
    },
  );
  return position;
}
