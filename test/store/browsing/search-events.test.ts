import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { globalPosition } from '../../../src/index.ts';
import { type StoredEvent, searchEventPage, searchEvents } from '../../../src/store/browsing/search-events.ts';
import type { EventSearch } from '../../../src/store/browsing/search-windows.ts';
import { searchedTypes } from '../../../src/store/browsing/searched-types.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import type { Queryable, Statement } from '../../../src/store/statements/statement.ts';
import { effort } from '../../support/effort.ts';
import { account } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

const families = new Map([[account.name, account]]);
const day = (second: number) => new Date(Date.UTC(2026, 0, 31) + second * 1000).toISOString();

let database: TestDatabase;
let db: Database;

interface Stored {
  readonly position: bigint;
  readonly family: string;
  readonly streamId: string;
  readonly type: string;
  readonly correlationId: string | null;
  readonly second: number;
}

let stored: Stored[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  // In the middle, the clock is set back by 40 seconds. Every seventh position is a gap.
  stored = Array.from({ length: 400 }, (_, index) => ({
    position: BigInt(index + Math.floor(index / 6) + 1),
    family: index % 3 === 0 ? 'parcel' : 'account',
    streamId: `s${index % 5}`,
    type: ['Opened', 'Credited', 'Debited'][index % 3] as string, // of three
    correlationId: index % 4 === 0 ? null : `c${Math.floor(index / 8) % 12}`,
    second: index * 2 - (index < 200 ? 0 : 40),
  }));
  await insert(stored);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Inserts events with chosen positions and times, which an append would choose itself. */
async function insert(events: readonly Stored[]): Promise<void> {
  const numbers = new Map<string, number>();
  const rows = events.map((event) => {
    const stream = `${event.family}/${event.streamId}`;
    numbers.set(stream, (numbers.get(stream) ?? 0) + 1);
    const metadata = event.correlationId === null ? {} : { correlationId: event.correlationId };
    return { ...event, position: Number(event.position), number: numbers.get(stream), at: day(event.second), metadata };
  });
  await database.administer(`
    insert into refold.events (position, stream_position, recorded_at, family, stream_id, type, payload, metadata)
    overriding system value
    select position, number, at, family, "streamId", type, json_build_object('of', position), metadata
    from jsonb_to_recordset('${JSON.stringify(rows)}')
      as (position bigint, number bigint, at timestamptz, family text, "streamId" text, type text, metadata jsonb)
    order by position;
    insert into refold.streams (family, stream_id, version)
    select family, stream_id, max(stream_position) from refold.events group by 1, 2
    on conflict (family, stream_id) do update set version = excluded.version;
    select setval('refold.events_position_seq', (select max(position) from refold.events))`);
}

async function collect(events: AsyncIterable<StoredEvent>): Promise<StoredEvent[]> {
  const all: StoredEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** What a search must find, by its definition. */
function expected(search: EventSearch): bigint[] {
  const matching = stored.filter(
    ({ position, family, streamId, type, correlationId, second }) =>
      position > search.after &&
      position <= search.upTo &&
      (!search.stream || (family === search.stream.family && streamId === search.stream.streamId)) &&
      (!search.types || search.types.includes(`${family}.${type}`)) &&
      (search.correlationId === undefined || correlationId === search.correlationId) &&
      (search.since === undefined || day(second) >= search.since) &&
      (search.until === undefined || day(second) < search.until),
  );
  const positions = matching.map(({ position }) => position);
  return (search.order === 'newestFirst' ? positions.toReversed() : positions).slice(0, search.limit);
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
const position = (usual: bigint) =>
  fc.oneof(fc.constant(usual), fc.bigInt(0n, 470n)).map((value) => globalPosition(value));
const time = fc.oneof(fc.integer({ min: -40, max: 850 }), fc.integer({ min: 350, max: 410 })).map(day);
const searches: fc.Arbitrary<EventSearch> = fc.record({
  stream: optional(
    fc.record({
      family: fc.constantFrom('account', 'parcel', 'nothing'),
      streamId: fc.constantFrom('s0', 's1', 's4', 'nothing'),
    }),
  ),
  types: optional(
    fc.subarray(['account.Opened', 'account.Credited', 'parcel.Opened', 'parcel.Sent'], { minLength: 1 }),
  ),
  correlationId: optional(fc.constantFrom('c0', 'c5', 'c11', 'nothing')),
  since: optional(time),
  until: optional(time),
  after: position(0n),
  upTo: position(470n),
  order: fc.constantFrom('oldestFirst', 'newestFirst'),
  limit: fc.oneof(fc.constant(500), fc.integer({ min: 1, max: 60 })),
  payloads: fc.boolean(),
});

test('any search finds what matches, in its order, however little one statement visits', async () => {
  await fc.assert(
    fc.asyncProperty(
      searches,
      fc.integer({ min: 1, max: 500 }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom(500, 5_000, 1_000_000),
      async (search, window, page, bytes) => {
        const sizes = { window: BigInt(window), page, bytes };
        const found = await collect(searchEvents(db, families, search, sizes));
        expect(found.map((event) => event.position)).toEqual(expected(search));
      },
    ),
    { numRuns: effort(2000, 500) },
  );
});

test('pages of a search join to the whole, and end at their size', async () => {
  await fc.assert(
    fc.asyncProperty(
      searches,
      fc.integer({ min: 1, max: 500 }),
      fc.constantFrom(500, 5_000, 1_000_000),
      async (search, window, bytes) => {
        const sizes = { window: BigInt(window), page: 20, bytes };
        const joined: bigint[] = [];
        for (let rest = { ...search, limit: 25 }; ; ) {
          const { events, next } = await searchEventPage(db, families, rest, 3, sizes);
          joined.push(...events.map((event) => event.position));
          // Each event has more than 25 bytes, and at most one is beyond the size.
          if (search.payloads) expect(events.length).toBeLessThanOrEqual(bytes / 25 + 1);
          if (next === null) break;
          rest = search.order === 'oldestFirst' ? { ...rest, after: next } : { ...rest, upTo: next };
        }
        expect(joined).toEqual(expected({ ...search, limit: 500 }));
      },
    ),
    { numRuns: effort(500, 100) },
  );
});

test('types are named by type, family and type, or family; those that only the log has are known', async () => {
  expect(await searchedTypes(db, families, ['Opened'])).toEqual(['account.Opened', 'parcel.Opened']);
  expect(await searchedTypes(db, families, ['account.Credited'])).toEqual(['account.Credited']);
  expect(await searchedTypes(db, families, ['account.*'])).toHaveLength(account.types.length);
  await expect(searchedTypes(db, families, ['Opend'])).rejects.toThrow("'Opend'. Did you mean 'Opened'?");
});

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** Executes each statement of a search once more for its plan. */
function explaining(plans: PlanNode[]): Queryable {
  return {
    async query<Row extends object>(statement: Statement) {
      const [row] = await db.query<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>({
        text: `explain (analyze, buffers, format json) ${statement.text}`,
        values: statement.values ?? [],
      });
      const plan = row?.['QUERY PLAN'][0]?.Plan;
      if (plan) plans.push(plan);
      return db.query<Row>(statement);
    },
  };
}

function visits(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, plan) => sum + visits(plan), 0);
  if (node['Relation Name'] !== 'events') return below;
  return below + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
}

const blocks = (node: PlanNode) => node['Shared Hit Blocks'] + node['Shared Read Blocks'];

test('no statement of a search visits more of a long log than its bound', async () => {
  // The server would summarize the new pages in the background. Until that ends, the vacuum below leaves them out, and a search reads them all.
  await database.administer('alter index refold.events_by_correlation set (autosummarize = off)');
  await db.query({
    text: `
      insert into refold.events (stream_position, recorded_at, family, stream_id, type, payload, metadata)
      select number, '2026-02-01'::timestamptz + number * interval '1 second', 'account', 'long', 'Credited', '{"amount": "1"}',
        json_build_object('correlationId', 'long-' || number / 3)
      from generate_series(1, 40000) as number`,
  });
  await db.query({ text: `insert into refold.streams (family, stream_id, version) values ('account', 'long', 40000)` });
  await database.administer('vacuum analyze refold.events');
  const [size] = await db.query<{ pages: bigint }>({
    text: `select pg_relation_size('refold.events') / 8192 as pages`,
  });
  const upTo = globalPosition(40_900n);
  const long = { after: globalPosition(0n), upTo, order: 'oldestFirst', limit: 20 } as const;
  for (const search of [
    { ...long, types: ['account.Debited'] }, // hardly any
    { ...long, order: 'newestFirst' as const, types: ['account.Debited'] },
    { ...long, stream: { family: 'account', streamId: 'long' }, types: ['account.Debited'] },
    { ...long, since: '2026-02-01T08:00:00Z' },
    { ...long, until: '2026-02-01T02:00:00Z', order: 'newestFirst' as const },
    { ...long, correlationId: 'long-9000' },
  ] satisfies EventSearch[]) {
    const plans: PlanNode[] = [];
    await collect(searchEvents(explaining(plans), families, search));
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      expect(visits(plan)).toBeLessThanOrEqual(10_000);
      expect(blocks(plan)).toBeLessThan(Number(size?.pages) / 2);
    }
  }
});
