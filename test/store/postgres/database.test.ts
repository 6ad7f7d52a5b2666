import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import { connectWhenFree } from '../../../src/store/postgres/connect-when-free.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { databaseAddress, unknownOutcome } from '../../../src/store/postgres/database-errors.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let testDatabase: TestDatabase;
let db: Database;
beforeAll(async () => {
  testDatabase = await createTestDatabase({ role: 'superuser' }); // makes tables of its own
  db = createDatabase({ url: testDatabase.url });
  await db.query({ text: 'create table items (id int primary key)' });
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});

async function value(expression: string, ...values: unknown[]): Promise<unknown> {
  const [row] = await db.query<{ value: unknown }>({ text: `select ${expression} as value`, values });
  return row?.value;
}

describe('values are read exactly:', () => {
  test.for<[expression: string, expected: unknown]>([
    ['9007199254740993::int8', 9007199254740993n],
    ['7::int2', 7],
    ['7::int4', 7],
    ['0.1::float8', 0.1],
    ['1.10::numeric', '1.10'],
    ['true', true],
    ['null::int8', null],
    [`'{"a":[1,"x"]}'::jsonb`, { a: [1, 'x'] }],
    [`'2024-02-29'::date`, '2024-02-29'],
    [`'2024-02-29 12:00:00+02'::timestamptz`, '2024-02-29T10:00:00.000Z'],
    [`'2024-02-29 12:00:00.1+00'::timestamptz`, '2024-02-29T12:00:00.100Z'],
    [`'2024-02-29 12:00:00.123450+00'::timestamptz`, '2024-02-29T12:00:00.12345Z'],
    [`'2024-02-29 12:00:00.123456+00'::timestamptz`, '2024-02-29T12:00:00.123456Z'],
    [`'infinity'::timestamptz`, 'infinity'],
    [`'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid`, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    [`'{1,null,3}'::int8[]`, [1n, null, 3n]],
    [
      `'{{1,2},{3,4}}'::int4[]`,
      [
        [1, 2],
        [3, 4],
      ],
    ],
    [`'[0:1]={5,6}'::int4[]`, [5, 6]],
    [`'{}'::text[]`, []],
    [`array['2024-02-29 12:00+00'::timestamptz]`, ['2024-02-29T12:00:00.000Z']],
    [`array['{"a":"b,\\"c"}'::jsonb]`, [{ a: 'b,"c' }]],
    [`array[1.50::numeric]`, ['1.50']],
    [`array[true,false]`, [true, false]],
  ])('%s', async ([expression, expected]) => {
    expect(await value(expression)).toEqual(expected);
  });

  test('any array of texts', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', ',', '{', '}', ' ', 'NULL', 'é', '\n', "'") });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(text)), async (texts) => {
        expect(await value('$1::text[]', texts)).toEqual(texts);
      }),
    );
  });
});

describe.each([
  ['a transaction', false],
  ['a transaction in a pipeline', true],
])('%s', (_, pipeline) => {
  let own: Database;
  beforeAll(async () => {
    own = createDatabase({ url: testDatabase.url, pipeline });
    await db.query({ text: 'truncate items' });
  });
  afterAll(() => own.close());

  const ids = async () =>
    (await db.query<{ id: number }>({ text: 'select id from items order by id' })).map(({ id }) => id);

  test('passes the error of its callback unchanged, even if the session is lost meanwhile', async () => {
    const failure = new Error('changed my mind');
    const failed = own.transaction(async (tx) => {
      const [session] = await tx.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
      const ended = new Promise((resolve) => tx.client.once('error', resolve));
      await db.query({ text: 'select pg_terminate_backend($1)', values: [session?.pid] });
      await ended;
      throw failure;
    });
    await expect(failed).rejects.toBe(failure);
  });

  test('commits when its callback returns, and rolls back when it throws', async () => {
    await own.transaction((tx) => tx.query({ text: 'insert into items values (1)' }));
    const failure = new Error('changed my mind');
    const failed = own.transaction(async (tx) => {
      await tx.query({ text: 'insert into items values (2)' });
      throw failure;
    });
    await expect(failed).rejects.toBe(failure);
    expect(await ids()).toEqual([1]);
  });

  test('in which a failed statement was ignored fails', async () => {
    const careless = own.transaction(async (tx) => {
      await tx.query({ text: 'insert into items values (3)' });
      await tx.query({ text: 'select no_such_column' }).catch(() => {});
    });
    await expect(careless).rejects.toMatchObject({
      code: 'DATABASE_ERROR',
      message: expect.stringContaining('rolled back'),
    });
    expect(await ids()).not.toContain(3);
  });

  test('that only reads has one snapshot and can’t write', async () => {
    await own.transaction(
      async (tx) => {
        const before = await tx.query({ text: 'select id from items' });
        await db.query({ text: 'insert into items values (4)' });
        expect(await tx.query({ text: 'select id from items' })).toEqual(before);
      },
      { isolation: 'repeatable read', readOnly: true },
    );
    const writing = own.transaction((tx) => tx.query({ text: 'insert into items values (5)' }), { readOnly: true });
    await expect(writing).rejects.toMatchObject({ fields: { sqlState: '25006' } });
  });

  test('whose session is terminated fails, and the pool keeps working', async () => {
    const ended = own.transaction(async (tx) => {
      const [session] = await tx.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
      await db.query({ text: 'select pg_terminate_backend($1, 5000)', values: [session?.pid] });
      await tx.query({ text: 'insert into items values (6)' });
    });
    await expect(ended).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(await ids()).not.toContain(6);
  });

  test('that the server ends because this process was frozen is an outage: nothing is written', async () => {
    const frozen = () =>
      own.transaction(
        async (tx) => {
          await tx.query({ text: 'insert into items values (7)' });
          // Nothing is read or sent meanwhile.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
          await tx.query({ text: 'insert into items values (8)' });
          throw new Error('the server was too slow to end it');
        },
        { idleTimeoutMs: 1 },
      );
    const error = await until(async () => {
      const failed = await frozen().catch((error) => error);
      return failed instanceof RefoldError && failed.fields.sqlState === '25P03' && failed;
    });
    expect(error.code).toBe('DATABASE_UNAVAILABLE');
    expect(unknownOutcome(error)).toBe(error);
    expect(await ids()).not.toContain(7);
  });

  test('that can’t begin executes nothing and returns no rows', async () => {
    const isolation = 'no such level' as never;
    const found: unknown[] = [];
    const reading = own.transaction(async (tx) => found.push(await tx.query({ text: 'select 1' })), {
      isolation,
      readOnly: true,
    });
    await expect(reading).rejects.toMatchObject({ code: 'DATABASE_ERROR', fields: { sqlState: '42601' } });
    expect(found).toEqual([]);
    const writing = own.transaction((tx) => tx.query({ text: 'insert into items values (7)' }), { isolation });
    await expect(writing).rejects.toMatchObject({ fields: { sqlState: '42601' } });
    expect(await ids()).not.toContain(7);
    expect(await own.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
  });
});

test('the first query of a read-only transaction is sent along with its begin', async () => {
  const own = createDatabase({ url: testDatabase.url, pipeline: true });
  const sizes: number[] = [];
  await own.transaction(
    async (tx) => {
      const { stream } = (tx.client as unknown as pg.Client).connection;
      sizes.push(stream.writableLength);
      const first = tx.query({ text: 'select 1' });
      sizes.push(stream.writableLength);
      await first;
      sizes.push(stream.writableLength);
    },
    { readOnly: true },
  );
  const [ofBegin = 0, ofBoth = 0, atLast] = sizes;
  expect(ofBegin).toBeGreaterThan(0);
  expect(ofBoth).toBeGreaterThan(ofBegin);
  expect(atLast).toBe(0);
  await own.close();
});

describe('on a server that has no connection left for the role', () => {
  const role = `crowded_${randomBytes(4).toString('hex')}`;
  let url: string;
  let others: pg.Client[];

  beforeAll(async () => {
    await db.query({ text: `create role ${role} login connection limit 2` });
    url = Object.assign(new URL(testDatabase.url), { username: role }).href;
  });
  afterAll(() => db.query({ text: `drop role ${role}` }));

  beforeEach(async () => {
    others = await Promise.all(
      [1, 2].map(async () => {
        const client = new pg.Client({ connectionString: url });
        await client.connect();
        return client;
      }),
    );
  });
  afterEach(() => Promise.all(others.map((client) => client.end())));

  test('a statement waits until another process closes a connection', async () => {
    const crowded = createDatabase({ url });
    const answer = crowded.query({ text: 'select 1 as one' });
    const impatient = new pg.Pool({ connectionString: url });
    // By now, connections have been refused repeatedly: this pool gives up.
    await expect(connectWhenFree(impatient, 0)).rejects.toMatchObject({ code: '53300' });
    await others.pop()?.end();
    expect(await answer).toEqual([{ one: 1 }]);
    await Promise.all([impatient.end(), crowded.close()]);
  });

  test('more concurrent statements than the server admits share the connections that the pool could open', async () => {
    await others.pop()?.end();
    const crowded = createDatabase({ url, maxConnections: 10 });
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const rows = await Promise.all(
      numbers.map((n) => crowded.query({ text: 'select $1::int as n from pg_sleep(0.01)', values: [n] })),
    );
    expect(rows).toEqual(numbers.map((n) => [{ n }]));
    await crowded.close();
  });
});

describe('errors', () => {
  test('of a statement keep the state, the constraint and the table', async () => {
    await db.query({ text: 'insert into items values (7)' });
    const error = await db.query({ text: 'insert into items values (7)' }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(RefoldError);
    expect(error).toMatchObject({
      code: 'DATABASE_ERROR',
      fields: { sqlState: '23505', constraint: 'items_pkey', table: 'items' },
      cause: expect.any(pg.DatabaseError),
    });
  });

  test.for<[what: string, part: Partial<URL>, message: RegExp]>([
    ['where nothing listens', { port: '1' }, /:1\/refold.*nothing listens there/],
    ['with an unknown host', { hostname: 'no-such-host.invalid' }, /no-such-host\.invalid:.*host name/],
    ['with an unknown database', { pathname: '/no_such_database' }, /no_such_database: the database does not exist/],
    ['as an unknown user', { username: 'nobody' }, /user/],
  ])('to connect %s name the address and the way out, and hide the password', async ([, part, message]) => {
    const url = Object.assign(new URL(testDatabase.url), { password: 'secret', ...part });
    // A name service that does not respond may take longer than the connection timeout.
    const elsewhere = createDatabase({ url: url.href, connectTimeoutMs: 300_000 });
    const error = await elsewhere.query({ text: 'select 1' }).catch((cause: unknown) => cause);
    await elsewhere.close();
    expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE', message: expect.stringMatching(message) });
    expect(JSON.stringify([error, String(error)])).not.toContain('secret');
  });

  test('of an answer that the server can not make are not those of an outage', async () => {
    const rows =
      "select json_agg(line) from (select repeat('x', 16000000) as line from generate_series(1, 70)) as lines";
    await expect(db.query({ text: rows })).rejects.toMatchObject({
      code: 'ANSWER_TOO_LARGE',
      message: expect.stringContaining('larger than a gigabyte'),
    });
    expect(await value('1')).toBe(1);
  });

  test('name a database without its password', () => {
    expect(databaseAddress('postgres://me:secret@db.example:6543/shop?sslmode=require')).toBe('db.example:6543/shop');
    expect(databaseAddress('postgres://db.example/shop')).toBe('db.example:5432/shop');
    expect(databaseAddress('postgres://me:sec ret@/shop')).toBe('(a connection URL that cannot be parsed)');
  });
});

test('settings in the URL are kept beside Refold’s own settings', async () => {
  const url = new URL(testDatabase.url);
  url.searchParams.set('options', '-c work_mem=12MB');
  url.searchParams.set('application_name', 'refold-of-mine');
  const configured = createDatabase({ url: url.href, statementTimeoutMs: 1234 });
  const [settings] = await configured.query({
    text: `
      select
        current_setting('work_mem') as memory,
        current_setting('timezone') as zone,
        current_setting('application_name') as name,
        current_setting('statement_timeout') as timeout`,
  });
  await configured.close();
  expect(settings).toEqual({ memory: '12MB', zone: 'UTC', name: 'refold-of-mine', timeout: '1234ms' });
});

test('a session that is terminated as it begins fails its statement, but not the process', async () => {
  // All in one packet, as a crashing server sends it: the driver reports the end in the same turn as the beginning.
  const packet = Buffer.concat([
    serverMessage('R', Buffer.alloc(4)),
    serverMessage('Z', Buffer.from('I')),
    serverMessage(
      'E',
      Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
    ),
  ]);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(packet));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const crashing = createDatabase({ url: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await expect(crashing.query({ text: 'select 1' })).rejects.toBeInstanceOf(RefoldError);
  await crashing.close();
  await new Promise((resolve) => server.close(resolve));
});

/** Builds a message of PostgreSQL's protocol. */
function serverMessage(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

test('the error of a lost idle connection does not carry the connection', async () => {
  const lost = createDatabase({ url: testDatabase.url });
  const [session] = await lost.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
  const told = once(lost.pool, 'error');
  await db.query({ text: 'select pg_terminate_backend($1)', values: [session?.pid] });
  const [error] = await told;
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toHaveProperty('client');
  await lost.close();
});
