import assert from 'node:assert/strict';
import { beginning, type GlobalPosition, globalPosition } from '../events/global-position.ts';
import type { Row } from '../projections/columns/row-codec.ts';
import { keyText, type Projection } from '../projections/projection/projection.ts';
import type { SqlFold } from '../projections/projection/sql-fold.ts';
import { upcastEvents } from '../runtime/set-based/upcast-events.ts';
import { compareRow, foldAgain, missingRows } from '../runtime/verification/verify.ts';
import { withScratchDatabase } from '../store/embedded/scratch-database.ts';
import { createEventLog, type EventLog } from '../store/event-log.ts';
import type { Database } from '../store/postgres/database.ts';
import { createSetMerge } from '../store/set-based/set-merge.ts';
import { qualified } from '../store/statements/identifiers.ts';
import { createReadSchema, createReadTable } from '../store/tables/read-table.ts';
import { scanTable } from '../store/tables/table-scan.ts';
import type { InMemoryAppend } from './in-memory-log.ts';

export interface EqualityProof {
  /** The reference projection, which folds event by event. */
  readonly evolve: Projection;
  /** The projection with `evolveSql` and the same table. It may have another name or version. */
  readonly evolveSql: Projection;
  /** The events, appended to an empty log in this order. */
  readonly events: readonly InMemoryAppend[];
  /**
   * The server to use. A database is created on it for this call, and dropped afterwards; the user must be allowed to do so.
   * @default DATABASE_URL of the environment, else an embedded server for this call, which takes some seconds
   */
  readonly databaseUrl?: string;
  /** How many random divisions into batches are tried, in addition to all events at once and one at a time (the first 200). @default 5 */
  readonly divisions?: number;
  /** The seed of the random divisions. A failure names its seed; pass it to repeat the same divisions. @default random */
  readonly seed?: number;
}

const schema = 'proof';

/**
 * Proves that `evolveSql` produces the same rows as `evolve` from the same events, in PostgreSQL, for any division of the events into
 * batches.
 *
 * @throws AssertionError with the first row that differs, its columns and the batches that led to it.
 * @example
 * await proveEqual({
 * evolve: balanceByEvolve,
 * evolveSql: balanceBySql,
 * events: [{ family: bank, streamId: 'a1', events: [{ type: 'Deposited', payload: { amount: '12.50' } }] }],
 * });
 */
export async function proveEqual(proof: EqualityProof): Promise<void> {
  const { evolve, evolveSql, divisions = 5, seed = Math.floor(Math.random() * 2 ** 32) } = proof;
  const { sqlFold } = evolveSql;
  assert(evolve.sqlFold === null, `${evolve.id} has no 'evolve', so it can't say what is right.`);
  assert(sqlFold !== null, `${evolveSql.id} has no 'evolveSql', so there is nothing to prove.`);
  assert.equal(
    evolveSql.tableFingerprint,
    evolve.tableFingerprint,
    `${evolveSql.id} and ${evolve.id} have different columns.`,
  );
  await withScratchDatabase(proof.databaseUrl, async (db) => {
    const log = createEventLog(db, [...new Set([...evolve.families, ...evolveSql.families])]);
    await appendAll(log, proof.events);
    const upTo = await log.horizon();
    const expected = await foldAgain({ log, projection: evolve, upTo, chosen: () => true });
    await createReadSchema(db, schema);
    const random = randomNumbers(seed);
    const all = [
      { name: 'all at once', ends: [upTo] },
      { name: 'one at a time', ends: oneAtATime(upTo) },
      ...Array.from({ length: divisions }, () => {
        const ends = randomEnds(upTo, random);
        return { name: `in batches that end at ${shortList(ends)} (seed ${seed})`, ends };
      }),
    ];
    for (const { name, ends } of all) {
      await foldWithSql(db, log, evolveSql, sqlFold, ends);
      await compare(db, { evolve, evolveSql }, new Map(expected), name);
    }
  });
}

async function appendAll(log: EventLog, appends: readonly InMemoryAppend[]): Promise<void> {
  // A good batch size for one statement.
  const together = 500;
  for (let start = 0; start < appends.length; start += together) {
    const batch = appends.slice(start, start + together);
    if (batch.some(({ events }) => events.some(({ payloadVersion }) => payloadVersion !== undefined)))
      throw new TypeError('proveEqual appends events as the application does: leave out payloadVersion.');
    for (const verdict of await log.appendInOrder(batch)) {
      if (verdict.kind === 'refused') throw verdict.error;
    }
  }
}

async function foldWithSql(
  db: Database,
  log: EventLog,
  projection: Projection,
  fold: SqlFold,
  ends: readonly GlobalPosition[],
): Promise<void> {
  const table = createReadTable(projection, schema);
  await table.drop(db);
  await table.create(db);
  const merge = createSetMerge(projection, fold, qualified(schema, projection.tableName), db);
  await db.transaction((tx) => merge.check(tx));
  let after = beginning;
  for (const upTo of ends) {
    while (after < upTo) {
      const { upTo: end, events: upcast } = await upcastEvents(log, merge.upcast, after, upTo);
      await db.transaction((tx) => merge.run(tx, { after, upTo: end, upcast }, { keys: false }));
      after = end;
    }
  }
}

async function compare(
  db: Database,
  { evolve, evolveSql }: Pick<EqualityProof, 'evolve' | 'evolveSql'>,
  expected: Map<string, Row | null>,
  batches: string,
): Promise<void> {
  const { keyOf } = createReadTable(evolveSql, schema);
  const fail = (key: string, problem: string) =>
    assert.fail(
      `${evolveSql.id} returns other rows than ${evolve.id} from the same events, ${batches}: row ${key} ${problem}.`,
    );
  for await (const rows of scanTable(db, schema, evolveSql)) {
    for (const row of rows) {
      const key = keyText(keyOf(row));
      const should = expected.get(key);
      const [difference] = compareRow(evolve, expected, key, row);
      if (difference?.kind === 'surplus') fail(key, 'should not be there');
      if (difference)
        fail(
          key,
          difference.columns
            .map((name) => `has ${name} = ${shown(evolve, name, row)}, not ${shown(evolve, name, should)}`)
            .join(', '),
        );
    }
  }
  const [missing] = missingRows(expected);
  if (missing) fail(missing.key, 'is missing');
}

function shown({ codec }: Projection, name: string, row: Row | null | undefined): string {
  return JSON.stringify(codec.encodeValue(name, row?.[name]));
}

function oneAtATime(upTo: GlobalPosition): GlobalPosition[] {
  const most = 200n;
  const ends: GlobalPosition[] = [];
  for (let end = 1n; end < upTo && end < most; end++) ends.push(globalPosition(end));
  return [...ends, upTo];
}

/** Includes short, long and empty batches. */
function randomEnds(upTo: GlobalPosition, random: () => number): GlobalPosition[] {
  const count = Math.floor(random() * 12);
  const ends = Array.from({ length: count }, () => BigInt(Math.floor(random() * Number(upTo))));
  return [...ends.sort((a, b) => (a < b ? -1 : 1)).map(globalPosition), upTo];
}

function shortList(ends: readonly GlobalPosition[]): string {
  return ends.join(', ');
}

/** mulberry32, a seeded random number generator. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
