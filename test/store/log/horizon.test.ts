import fc from 'fast-check';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { beginning, type GlobalPosition } from '../../../src/events/global-position.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { readStalls } from '../../../src/store/log/horizon.ts';
import type { LogPage, LogTail } from '../../../src/store/log/read-events.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { effort } from '../../support/effort.ts';
import { startOwnServer } from '../../support/own-server.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { account, deposited } from './families.ts';

let testDatabase: TestDatabase;
let db: Database;
let log: EventLog;
const opened = new Set<pg.Client>();

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url, maxConnections: 10 });
  log = createEventLog(db, [account]);
  await testDatabase.administer(`
    create table elsewhere (id int generated always as identity primary key);
    grant insert on elsewhere to public`);
});
afterEach(async () => {
  await Promise.all([...opened].map((client) => client.end()));
  opened.clear();
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});

async function connect(url = testDatabase.url, name = 'writer'): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => {}); // some connections are terminated on purpose
  await client.connect();
  await client.query("set default_transaction_isolation = 'read committed'"); // the test server may have another default
  opened.add(client);
  return client;
}

interface Append {
  readonly stream: string;
  readonly size: number;
  /** The time between the insert and the end of the transaction. */
  readonly delayMs: number;
  readonly end: 'commit' | 'rollback' | 'lost connection';
  /** Refold's function, or an INSERT by a program that knows nothing of horizons. */
  readonly by: 'refold' | 'plain insert';
  /** Whether the transaction wrote elsewhere before, and so has an older transaction id than its events suggest. */
  readonly wroteBefore: boolean;
}

const appendBy = (writer: number): fc.Arbitrary<Append> =>
  fc.record({
    stream: fc.constantFrom(`own ${writer}`, 'shared a', 'shared b'),
    size: fc.integer({ min: 1, max: 3 }),
    delayMs: fc.constantFrom(0, 0, 1, 3, 20),
    end: fc.oneof(
      { weight: 17, arbitrary: fc.constant('commit' as const) },
      { weight: 2, arbitrary: fc.constant('rollback' as const) },
      { weight: 1, arbitrary: fc.constant('lost connection' as const) },
    ),
    by: fc.constantFrom('refold', 'refold', 'plain insert'),
    wroteBefore: fc.boolean(),
  });

const writers = 12;
const plans = fc.tuple(
  ...Array.from({ length: writers }, (_, writer) => fc.array(appendBy(writer), { minLength: 15, maxLength: 25 })),
);

/** Opens a transaction and appends in it. */
async function beginAppend(client: pg.Client, { stream, size, by }: Append): Promise<void> {
  const ids = Array.from({ length: size }, () => crypto.randomUUID());
  if (by === 'plain insert') {
    await client.query(
      `insert into refold.events (family, stream_id, stream_position, type, id, payload)
       select 'account', 'foreign ' || id, 1, 'Deposited', id, '{"amount":1}' from unnest($1::uuid[]) id`,
      [ids],
    );
    return;
  }
  const events = ids.map((id, index) => ({ ...deposited(index), id }));
  await log.append(
    { family: account, streamId: stream, events },
    {
      query: async (statement) => {
        const { rows } = await client.query({
          text: statement.text,
          values: [...(statement.values ?? [])],
          types: db.pool.options.types,
        });
        return rows;
      },
    },
  );
}

async function write(plan: readonly Append[]): Promise<void> {
  let client = await connect();
  for (const append of plan) {
    await client.query('begin');
    if (append.wroteBefore) await client.query('insert into elsewhere default values');
    await beginAppend(client, append);
    await client.query('select pg_sleep($1)', [append.delayMs / 1000]);
    if (append.end === 'lost connection') {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      await db.query({ text: 'select pg_terminate_backend($1, 10000)', values: [rows[0]?.pid] });
      client = await connect();
    } else {
      await client.query(append.end);
    }
  }
}

/** A consumer's poll for new events: returns the horizon, with or without the first page. */
type Look = (after: GlobalPosition, limit: number) => Promise<LogTail>;

const horizonAlone: Look = async (after) => ({ events: [], bytes: 0, upTo: after, ...(await log.readHead(null)) });
const pageAlong: Look = (after, limit) => log.readTail({ after, limit });

/** Follows the log as a consumer does, until `done` and everything is read. */
async function tail(after: GlobalPosition, limit: number, done: () => boolean, lookAt: Look): Promise<RecordedEvent[]> {
  const seen: RecordedEvent[] = [];
  for (let position = after, last = false; ; ) {
    last = done();
    const look = await lookAt(position, limit);
    const { horizon } = look;
    for (let page: LogPage = look; ; page = await log.readAll({ after: position, upTo: horizon, limit })) {
      seen.push(...page.events);
      position = page.upTo;
      if (position >= horizon) break;
    }
    if (last && horizon === (await log.head())) return seen;
  }
}

/** Follows the log by the last position seen, which is wrong: it loses events. */
async function naiveTail(after: GlobalPosition, done: () => boolean): Promise<Set<string>> {
  const client = await connect();
  const seen = new Set<string>();
  for (let position: unknown = after; ; ) {
    const last = done();
    const { rows } = await client.query(
      'select id, position from refold.events where position > $1 order by position',
      [position],
    );
    for (const row of rows) seen.add(row.id);
    position = rows.at(-1)?.position ?? position;
    if (last && rows.length === 0) return seen;
  }
}

async function committedAfter(start: GlobalPosition): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    text: 'select id from refold.events where position > $1 order by position',
    values: [start],
  });
  return rows.map(({ id }) => id);
}

/** The whole log in one read. */
async function replay(after: GlobalPosition): Promise<RecordedEvent[]> {
  const { events } = await log.readAll({ after, upTo: await log.horizon(), limit: 1_000_000 });
  return [...events];
}

describe('a reader that reads up to the horizon', () => {
  test('receives every committed event once, in replay order, despite late commits, rollbacks, lost connections and open transactions', async () => {
    const { adminUrl } = inject('postgres');
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const plan = fc.sample(plans, { seed, numRuns: 1 }).flat(); // a seed is easier to report than a plan
        const start = await log.head();
        // These stay open from before the first event until after the last read; neither may hold the horizon back.
        const bystander = await connect();
        await bystander.query('begin');
        await bystander.query('insert into elsewhere default values');
        const neighbour = await connect(adminUrl);
        await neighbour.query('begin');
        await neighbour.query('create temp table mine (id int)');

        let writing = true;
        const done = () => !writing;
        const readers = [
          tail(start, 7, done, horizonAlone),
          tail(start, 500, done, horizonAlone),
          tail(start, 3, done, pageAlong),
          tail(start, 100, done, pageAlong),
          naiveTail(start, done),
        ] as const;
        await Promise.all(plan.map((appends) => write(appends)));
        writing = false;
        const [paged, whole, pagedAlong, wholeAlong, naive] = await Promise.all(readers);

        const committed = await committedAfter(start);
        expect(paged.map(({ id }) => id)).toEqual(committed);
        for (const others of [whole, pagedAlong, wholeAlong]) expect(others).toEqual(paged);
        expect(await replay(start)).toEqual(paged);
        expect(committed.length).toBeGreaterThan(writers * 15);
        expect(committed.filter((id) => !naive.has(id)).length, 'events lost by a naive reader').toBeGreaterThan(0);
        const versions = new Map<string, number>();
        for (const { streamId, streamPosition } of paged) {
          const before = versions.get(streamId);
          if (before !== undefined) expect(streamPosition).toBe(before + 1);
          versions.set(streamId, streamPosition);
        }
        await bystander.query('rollback');
        await neighbour.query('rollback');
      }),
      { numRuns: effort(4, 2), endOnFailure: true },
    );
  });

  test('waits for an earlier append that is still uncommitted, and for nothing else', async () => {
    const [slow, fast] = [await connect(), await connect()];
    const append = { stream: 's', size: 1, delayMs: 0, end: 'commit', by: 'plain insert', wroteBefore: false } as const;
    const before = await log.head();
    await slow.query('begin');
    await beginAppend(slow, append);
    await beginAppend(fast, append);
    expect(await log.head()).toBe(before + 2n);
    expect(await log.horizon()).toBe(before);
    expect(await log.readTail({ after: before, limit: 10 })).toMatchObject({
      events: [],
      upTo: before,
      horizon: before,
    });
    await slow.query('rollback');
    expect(await log.horizon()).toBe(before + 2n);
    expect(await replay(before)).toHaveLength(1);
    expect(await log.readTail({ after: before, limit: 10 })).toMatchObject({
      events: await replay(before),
      upTo: before + 2n,
      horizon: before + 2n,
    });
  });
});

describe('the events returned along with the horizon', () => {
  test('are read after it, with a newer snapshot than the caller has', async () => {
    const [reader, gate] = [await connect(), await connect()];
    const after = await log.head();
    await gate.query('select pg_advisory_lock(7)');
    const asked = reader.query(
      `with waited as materialized (select $1::bigint as after, pg_advisory_xact_lock(7))
       select tail.horizon, tail.position from waited, lateral refold.read_tail(waited.after, '{account.Deposited}', 10) as tail`,
      [after],
    );
    // The statement has its snapshot, but has not read the horizon yet.
    await until(async () => {
      const waiting = await db.query({
        text: `select from pg_locks where locktype = 'advisory' and objid = 7 and not granted`,
      });
      return waiting.length > 0;
    });
    const { position } = await log.append({ family: account, streamId: 'meanwhile', events: [deposited(1)] });
    await gate.query('select pg_advisory_unlock(7)');
    const { rows } = await asked;
    expect(rows).toEqual([{ horizon: String(position), position: String(position) }]);
  });

  test('are empty in a transaction that keeps one snapshot, and the result says so', async () => {
    const after = await log.head();
    const client = await connect();
    await client.query('begin isolation level repeatable read');
    await client.query('select from refold.events limit 1');
    const { position } = await log.append({ family: account, streamId: 'meanwhile', events: [deposited(1)] });
    const { rows } = await client.query(
      `select horizon, up_to, position from refold.read_tail($1, '{account.Deposited}', 10)`,
      [after],
    );
    expect(rows).toEqual([{ horizon: String(position), up_to: String(after), position: null }]);
    await client.query('rollback');
  });
});

describe('a writer’s tag', () => {
  const insert = `
    insert into refold.events (family, stream_id, stream_position, type, payload)
    values ('account', 'tagged ' || gen_random_uuid(), 1, 'Deposited', '{"amount":1}')`;
  const tags = async () => (await db.query({ text: 'select * from refold.tags' })).length;

  test('is shared by all inserts of a transaction', async () => {
    const client = await connect();
    await client.query('begin');
    const before = await log.head();
    for (let times = 0; times < 20; times++) await client.query(insert);
    expect(await tags()).toBe(1);
    expect(await log.horizon()).toBe(before);
    await client.query('commit');
    expect(await tags()).toBe(0);
    await client.query('begin');
    await client.query(insert);
    expect(await tags()).toBe(1);
    await client.query('rollback');
  });

  test('is released with its savepoint and taken again by the next insert', async () => {
    const client = await connect();
    await client.query('begin; savepoint before');
    await client.query(insert);
    await client.query('rollback to before');
    expect(await tags()).toBe(0);
    const before = await log.head();
    await client.query(insert);
    await log.append({ family: account, streamId: 'meanwhile', events: [deposited(1)] });
    expect(await log.horizon()).toBe(before);
    await client.query('commit');
    expect(await log.horizon()).toBe(before + 2n);
  });

  test('in another database on the same server does not hold the horizon back', async () => {
    const other = await createTestDatabase();
    const client = await connect(other.url);
    await client.query('begin');
    await client.query(insert);
    const { position } = await log.append({ family: account, streamId: 'here', events: [deposited(1)] });
    expect(await log.horizon()).toBe(position);
    await client.query('rollback');
    await client.end();
    opened.delete(client);
    await other.drop();
  });

  test('identifies the session that holds the horizon back', async () => {
    const before = await log.head();
    const client = await connect(testDatabase.url, 'nightly import');
    await client.query('begin');
    await client.query(insert);
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    expect(await readStalls(db)).toEqual([
      {
        tag: before,
        pid: rows[0]?.pid,
        applicationName: 'nightly import',
        state: 'idle in transaction',
        seconds: expect.any(Number),
        query: 'select pg_backend_pid() as pid',
        role: expect.any(String),
        clientAddress: expect.any(String),
      },
    ]);
    await client.query('rollback');
    expect(await readStalls(db)).toEqual([]);
  });
});

test('a prepared transaction holds the horizon back until it ends, and is named', async () => {
  const server = await startOwnServer({ settings: { max_prepared_transactions: '1' } });
  const own = createDatabase({ url: server.url });
  const ownLog = createEventLog(own, [account]);
  const first = await ownLog.append({ family: account, streamId: 's', events: [deposited(1)] });
  await own.query({
    text: `
      begin;
      insert into refold.events (family, stream_id, stream_position, type, payload)
      values ('account', 'prepared', 1, 'Deposited', '{"amount":1}');
      prepare transaction 'orphan'`,
  });
  const last = await ownLog.append({ family: account, streamId: 's', events: [deposited(2)] });
  expect(await ownLog.horizon()).toBe(first.position);
  expect(await readStalls(own)).toMatchObject([
    { tag: first.position, pid: null, applicationName: 'prepared transaction orphan', state: 'prepared', query: null },
  ]);
  await own.query({ text: `commit prepared 'orphan'` });
  expect(await ownLog.horizon()).toBe(last.position);
  const { events } = await ownLog.readAll({ after: first.position, upTo: last.position, limit: 10 });
  expect(events.map(({ streamId }) => streamId)).toEqual(['prepared', 's']);
  await own.close();
  await server.stop();
});

test('a log restored from its rows continues at its last position', async () => {
  const restored = await createTestDatabase();
  const own = createDatabase({ url: restored.url });
  const ownLog = createEventLog(own, [account]);
  await log.append({ family: account, streamId: 'before the dump', events: [deposited(1), deposited(2)] });
  for (const table of ['events', 'streams', 'append_keys']) {
    const [dump] = await db.query<{ rows: unknown[] }>({
      text: `select coalesce(json_agg(t), '[]') as rows from refold.${table} t`,
    });
    await own.query({
      text: `insert into refold.${table} overriding system value select * from json_populate_recordset(null::refold.${table}, $1)`,
      values: [JSON.stringify(dump?.rows)],
    });
  }
  const head = await log.head();
  await restored.administer(`select setval('refold.events_position_seq', ${head})`);
  const { position, streams } = await ownLog.append({
    family: account,
    streamId: 'before the dump',
    events: [deposited(3)],
  });
  expect(position).toBe(head + 1n);
  expect(streams).toMatchObject([{ version: 3 }]);
  const upTo = await ownLog.horizon();
  const { events } = await ownLog.readAll({ after: beginning, upTo, limit: 1_000_000 });
  expect(events.slice(0, -1)).toEqual(await replay(beginning));
  await own.close();
  await restored.drop();
});

test('the horizon of an empty log is its beginning', async () => {
  const empty = await createTestDatabase();
  const own = createDatabase({ url: empty.url });
  const emptyLog = createEventLog(own, [account]);
  expect([await emptyLog.horizon(), await emptyLog.head()]).toEqual([beginning, beginning]);
  expect(await emptyLog.readAll({ after: beginning, upTo: beginning, limit: 10 })).toEqual({
    events: [],
    bytes: 0,
    upTo: beginning,
  });
  await own.close();
  await empty.drop();
});
