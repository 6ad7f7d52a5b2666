import assert from 'node:assert/strict';
import { beginning, type GlobalPosition, globalPosition } from '../events/global-position.ts';
import type { Row } from '../projections/columns/row-codec.ts';
import { keyText, type Projection } from '../projections/declaration/projection.ts';
import type { SqlFold } from '../projections/declaration/sql-fold.ts';
import { upcastEvents } from '../runtime/processors/upcast-events.ts';
import { compareRow, foldAgain, missingRows } from '../runtime/verification/verify.ts';
import { withScratchDatabase } from '../store/embedded/scratch-database.ts';
import { createEventLog, type EventLog } from '../store/event-log.ts';
import type { Database } from '../store/postgres/database.ts';
import { createReadSchema, createReadTable } from '../store/tables/read-table.ts';
import { createSetMerge } from '../store/tables/sql-fold.ts';
import { scanTable } from '../store/tables/table-scan.ts';
import type { InMemoryAppend } from './in-memory-log.ts';

export interface EqualityProof {
  /** The projection that says event by event what is right. */
  readonly evolve: Projection;
  /** The one with `evolveSql`, with the same table; it may have another name or version. */
  readonly evolveSql: Projection;
  /** What is appended to an empty log, in this order. */
  readonly events: readonly InMemoryAppend[];
  /**
   * A server to work on; a database is made in it for this call, and dropped. Its user must be allowed to.
   * @default the environment's DATABASE_URL, else an embedded server for this call, which takes some seconds
   */
  readonly databaseUrl?: string;
  /** Random divisions into batches that are tried, beside all events at once and one at a time (the first 200). @default 5 */
  readonly divisions?: number;
  /** Repeats the divisions of a failure, which names it. @default another each time */
  readonly seed?: number;
}

const schema = 'proof';

/**
 * Proves that `evolveSql` makes the rows that `evolve` makes of the same events, in PostgreSQL, however the events are divided into batches.
 *
 * @throws AssertionError with the first row that differs, its columns and the batches that led to it.
 * @example
 * await proveEqual({
 *   evolve: balanceByEvolve,
 *   evolveSql: balanceBySql,
 *   events: [{ family: bank, streamId: 'a1', events: [{ type: 'Deposited', payload: { amount: '12.50' } }] }],
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
    `${evolveSql.id} and ${evolve.id} have other columns.`,
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
  // As many as one statement takes well.
  const together = 500;
  for (let start = 0; start < appends.length; start += together) {
    for (const verdict of await log.appendInOrder(appends.slice(start, start + together))) {
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
  const merge = createSetMerge(projection, fold, `"${schema}"."${projection.tableName}"`);
  await db.transaction((tx) => merge.check(tx));
  let after = beginning;
  for (const upTo of ends) {
    const upcast = await upcastEvents(log, merge.upcast, after, upTo);
    await db.transaction((tx) => merge.run(tx, { after, upTo, upcast }, { keys: false }));
    after = upTo;
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
      `${evolveSql.id} makes other rows than ${evolve.id} of the same events, ${batches}: row ${key} ${problem}.`,
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

/** Short batches and long ones alike, and empty ones. */
function randomEnds(upTo: GlobalPosition, random: () => number): GlobalPosition[] {
  const count = Math.floor(random() * 12);
  const ends = Array.from({ length: count }, () => BigInt(Math.floor(random() * Number(upTo))));
  return [...ends.sort((a, b) => (a < b ? -1 : 1)).map(globalPosition), upTo];
}

function shortList(ends: readonly GlobalPosition[]): string {
  return ends.join(', ');
}

/** mulberry32: the same numbers for the same seed. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
