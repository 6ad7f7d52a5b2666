import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { ConcurrencyConflict } from '../../../src/errors.ts';
import type { ExpectedVersion } from '../../../src/events/event.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import type { AppendResult } from '../../../src/store/log/append-result.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { until } from '../../support/until.ts';
import { account, deposited } from '../log/families.ts';

const { database: testDatabase, db, log } = await databaseOfFile(account);

interface Part {
  readonly stream: string;
  readonly expectedVersion: ExpectedVersion;
  readonly size: number;
}

interface Request {
  readonly parts: readonly Part[];
  readonly key: string | undefined;
  readonly process: 0 | 1;
}

const part: fc.Arbitrary<Part> = fc.record({
  stream: fc.constantFrom('a', 'b', 'c', 'd'),
  expectedVersion: fc.oneof(
    fc.constantFrom<ExpectedVersion>('any', 'any', 'stream-exists', 'no-stream'),
    fc.integer({ min: 0, max: 9 }),
  ),
  size: fc.integer({ min: 0, max: 3 }),
});

const request: fc.Arbitrary<Request> = fc.record({
  parts: fc
    .uniqueArray(part, { selector: ({ stream }) => stream, minLength: 1, maxLength: 3 })
    .filter((parts) => parts.some(({ size }) => size > 0)),
  key: fc.option(fc.constantFrom('k1', 'k2', 'k3'), { nil: undefined, freq: 3 }),
  process: fc.constantFrom(0, 1),
});

function fits(expected: ExpectedVersion, version: number): boolean {
  switch (expected) {
    case 'any':
      return true;
    case 'no-stream':
      return version === 0;
    case 'stream-exists':
      return version > 0;
    default:
      return version === expected;
  }
}

function fail(problem: string): never {
  throw new Error(problem);
}

const byPosition = (a: AppendResult, b: AppendResult) => (a.position < b.position ? -1 : 1);

describe('appends that many callers of two processes send at the same time', () => {
  test('are serializable: each append is written whole, refused whole, or a duplicate', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 2, maxLength: 40 }), async (requests) => {
        const prefix = `run ${run++} `;
        const processes = [log, createEventLog(db, [account], { maxInFlight: 1, maxBatch: 5 })];
        const settled = await Promise.allSettled(
          requests.map(({ parts, key, process }) =>
            processes[process]?.appendToStreams({
              streams: parts.map(({ stream, expectedVersion, size }) => ({
                family: account,
                streamId: prefix + stream,
                expectedVersion,
                events: Array.from({ length: size }, (_, index) => deposited(index)),
              })),
              ...(key === undefined ? {} : { idempotencyKey: prefix + key }),
            }),
          ),
        );

        // Position order is a serial order: in this order, every written append finds the versions that it expects.
        const written = settled.flatMap((outcome, index) =>
          outcome.status === 'fulfilled' && outcome.value && !outcome.value.duplicate
            ? [{ ...outcome.value, request: requests[index] as Request }]
            : [],
        );
        const versions = new Map<string, number>();
        for (const { request, streams, events } of written.toSorted(byPosition)) {
          const recorded = [];
          for (const { stream, expectedVersion, size } of request.parts) {
            const before = versions.get(stream) ?? 0;
            expect(fits(expectedVersion, before)).toBe(true);
            versions.set(stream, before + size);
            for (let index = 0; index < size; index++) recorded.push([prefix + stream, before + index + 1]);
          }
          expect(events.map(({ streamId, streamPosition }) => [streamId, streamPosition])).toEqual(recorded);
          expect(streams.map(({ streamId, version }) => [streamId, version])).toEqual(
            request.parts.map(({ stream }) => [prefix + stream, versions.get(stream)]),
          );
        }

        const firstOfKey = new Map(written.map((result) => [result.request.key, result]));
        const keys = written.flatMap(({ request: { key } }) => key ?? []);
        expect(new Set(keys).size).toBe(keys.length);
        settled.forEach((outcome, index) => {
          const { key, parts } = requests[index] as Request;
          if (outcome.status === 'rejected') {
            expect(outcome.reason).toBeInstanceOf(ConcurrencyConflict);
            const { expected, actual, fields } = outcome.reason;
            expect(parts.map(({ stream, expectedVersion }) => [prefix + stream, expectedVersion])).toContainEqual([
              fields.streamId,
              expected,
            ]);
            expect(fits(expected, actual)).toBe(false);
          } else if (outcome.value?.duplicate) {
            const { request: _, ...first } = firstOfKey.get(key) ?? fail(`nothing was written with the key '${key}'`);
            expect(outcome.value).toEqual({ ...first, duplicate: true });
          }
        });

        // The log holds what the callers were promised, and nothing else.
        const events = await db.query({
          text: `
            select id, position, stream_id as "streamId", stream_position::int as "streamPosition"
            from refold.events where starts_with(stream_id, $1) order by position`,
          values: [prefix],
        });
        expect(events).toEqual(
          written
            .flatMap(({ events }) => events)
            .map(({ id, position, streamId, streamPosition }) => ({ id, position, streamId, streamPosition }))
            .sort((a, b) => (a.position < b.position ? -1 : 1)),
        );
        const stored = await db.query<{ name: string; version: number }>({
          text: 'select stream_id as name, version::int from refold.streams where starts_with(stream_id, $1)',
          values: [prefix],
        });
        expect(new Map(stored.map(({ name, version }) => [name.slice(prefix.length), version]))).toEqual(
          new Map([...versions].filter(([, version]) => version > 0)),
        );
        const storedKeys = await db.query<{ key: string }>({
          text: 'select key from refold.append_keys where starts_with(key, $1) order by key',
          values: [prefix],
        });
        expect(storedKeys.map(({ key }) => key)).toEqual(keys.map((key) => prefix + key).sort());
      }),
      { numRuns: effort(150, 40) },
    );
  });

  test('share statements', async () => {
    let statements = 0;
    const counting: Database['query'] = (statement) => {
      statements++;
      return db.query(statement);
    };
    const counted = createEventLog({ ...db, query: counting }, [account], { maxInFlight: 1 });
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        counted.append({ family: account, streamId: `shared ${index % 10}`, events: [deposited(1)] }),
      ),
    );
    expect(statements).toBeLessThan(10);
    expect(new Set(results.map(({ position }) => position)).size).toBe(100);
  });

  test('share one statement if they are few, and two concurrent statements if they are many', async () => {
    const statementsOf = async (callers: number) => {
      const sent: { readonly streams: number; readonly underWay: number }[] = [];
      let underWay = 0;
      const noting: Database['query'] = async (statement) => {
        const [families] = statement.values as [string[]]; // one for each stream
        sent.push({ streams: families.length, underWay: underWay++ });
        return db.query<never>(statement).finally(() => underWay--);
      };
      const noted = createEventLog({ ...db, query: noting }, [account]);
      await Promise.all(
        Array.from({ length: callers }, (_, index) =>
          noted.append({ family: account, streamId: `${callers} callers ${index}`, events: [deposited(1)] }),
        ),
      );
      return sent;
    };
    expect(await statementsOf(63)).toEqual([{ streams: 63, underWay: 0 }]);
    expect(await statementsOf(64)).toEqual([
      { streams: 32, underWay: 0 },
      { streams: 32, underWay: 1 },
    ]);
  });
});

test('large appends are joined only into statements of limited size', async () => {
  const longest: number[] = [];
  const measuring: Database['query'] = (statement) => {
    longest.push(String(statement.values?.at(-1)).length);
    return db.query(statement);
  };
  const measured = createEventLog({ ...db, query: measuring }, [account], { maxInFlight: 1 });
  const owner = 'x'.repeat(1_500_000);
  const events = [{ type: 'Opened', payload: { owner } }] as const;
  await Promise.all(
    Array.from({ length: 5 }, (_, index) => measured.append({ family: account, streamId: `large ${index}`, events })),
  );
  expect(longest.length).toBe(3);
  expect(Math.max(...longest)).toBeLessThan(4 * 1024 * 1024);
});

describe('an append that the database refuses', () => {
  test('fails alone, and the appends joined with it succeed', async () => {
    // A stream that has events written without Refold.
    await db.query({
      text: `insert into refold.events (family, stream_id, stream_position, type, payload) values ('account', 'past', 1, 'Deposited', '{}')`,
    });
    const settled = await Promise.allSettled(
      Array.from({ length: 30 }, (_, index) =>
        log.append({
          family: account,
          streamId: index === 17 ? 'past' : `beside ${index}`,
          events: [deposited(index)],
        }),
      ),
    );
    expect(settled.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([17]);
    expect(settled[17]).toMatchObject({ reason: { code: 'DATABASE_ERROR', fields: { sqlState: '23505' } } });
    expect(await log.streamVersion(account, 'beside 16')).toBe(1);
  });

  test('that hits a deadlock with a user’s own transaction is retried', async () => {
    let deadlocks = 0;
    const deadlocking: Database['query'] = (statement) => {
      if (deadlocks++ < 3)
        return db.query({ text: `do $$ begin raise exception 'x' using errcode = 'deadlock_detected'; end $$` });
      return db.query(statement);
    };
    const unlucky = createEventLog({ ...db, query: deadlocking }, [account]);
    const { streams } = await unlucky.append({ family: account, streamId: 'unlucky', events: [deposited(2)] });
    expect(streams).toMatchObject([{ version: 1 }]);
    expect(deadlocks).toBe(4);
  });

  test('whose connection was lost is not retried, because it may have been written', async () => {
    const own = new pg.Client({ connectionString: testDatabase.url });
    await own.connect();
    await log.append({ family: account, streamId: 'locked', events: [deposited(1)] });
    await own.query(`begin; select from refold.streams where stream_id = 'locked' for update`);
    const patient = createEventLog(db, [account], { lockTimeoutMs: 300_000 });
    let settled = false;
    const lost = patient
      .append({ family: account, streamId: 'locked', events: [deposited(1)] })
      .catch((cause: unknown) => cause)
      .finally(() => {
        settled = true;
      });
    // It waits again and again: the session that was found may be another one by now.
    await until(async () => {
      if (!settled) await endWaiting(db);
      return settled;
    });
    expect(await lost).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('idempotency key'),
    });
    await own.query('rollback');
    await own.end();
    expect(await log.streamVersion(account, 'locked')).toBe(1);
  });
});

/** Ends the session of an append that waits for a lock. */
async function endWaiting(target: Database): Promise<void> {
  await target.query({
    text: `
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%refold.append(%'`,
  });
}
