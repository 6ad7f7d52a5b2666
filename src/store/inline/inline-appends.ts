import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { type FoldFailure, keyText, type Projection, storedIn } from '../../projections/declaration/projection.ts';
import type { CheckedAppend } from '../log/append-request.ts';
import { type AppendOutcome, appendBatch } from '../log/append-statement.ts';
import type { Database } from '../postgres/database.ts';
import { nothingSent, sqlStateOf } from '../postgres/database-errors.ts';
import { type Pipeline, roundTrip } from '../postgres/round-trip.ts';
import { savepoint } from '../postgres/savepoint.ts';
import type { Queryable } from '../postgres/statement.ts';
import { readBlockedAmong } from '../processors/dead-letters.ts';
import { createReadTable, type ReadTable } from '../tables/read-table.ts';
import { isRowRefusal } from '../tables/refused-rows.ts';
import { expectOrder } from '../tables/write-rows.ts';
import { enterInline, type Touched, touchedRows, WaitedForRows, wants, whoHolds } from './enter-inline.ts';
import { foldApart } from './fold-apart.ts';
import { type FoldedBatch, foldBatch, keysTouched, writesOf } from './folded-batch.ts';

export interface InlineAppendsOptions {
  /** Connections of its own, for appends that fold; best with a pipeline. */
  readonly db: Database;
  readonly readSchema: string;
  /** The inline versions that this process declares. */
  readonly projections: readonly Projection[];
  /** Freezes rows and events, so that an impure `evolve` fails where it is. */
  readonly freeze: boolean;
  /** Told of what the policy `skip` has left out. */
  onSkipped?(projection: Projection, skipped: readonly FoldFailure[]): void;
}

/** Appends whose events inline projections want: the rows are written in the append's transaction. */
export interface InlineAppends {
  /** Whether there may be something for them: where nothing is, the database has to know that nothing was missed. */
  concerns(batch: readonly CheckedAppend[]): boolean;
  /**
   * As `appendBatch`, and with what is written the rows of the versions that are live. An append whose events one of them can't fold
   * (with the policy `stop`) is refused, and its neighbours are written.
   */
  append(batch: readonly CheckedAppend[], lockTimeoutMs?: number): Promise<AppendOutcome[]>;
  /** The same of one append, in a transaction of the caller's; where it is refused, the transaction is as before and can go on. */
  appendWithin(tx: Queryable, append: CheckedAppend): Promise<AppendOutcome>;
}

export function createInlineAppends(options: InlineAppendsOptions): InlineAppends {
  const { db, readSchema, projections, freeze } = options;
  // Where each version's rows were at the last append: asked for along with the append, before it says where they are now.
  const lastTables = new Map<string, string>();
  const readTables = new Map<string, ReadTable>();

  const wantedBy = (batch: readonly CheckedAppend[]) =>
    projections.filter((projection) => batch.some(({ events }) => events.some((event) => wants(projection, event))));

  async function inOwnTransaction(
    batch: readonly CheckedAppend[],
    lockTimeoutMs: number | undefined,
    how: Pick<AppendAndFold, 'lookAhead' | 'apart'>,
  ): Promise<AppendOutcome[]> {
    const session = await db.session();
    let broken: Error | undefined;
    let committing = false;
    const onCommit = () => {
      committing = true;
    };
    try {
      const own = { lockTimeoutMs, onCommit };
      return await appendAndFold(session, batch, { ...how, pipeline: session.pipeline, own });
    } catch (error) {
      await session.query({ text: 'rollback' }).catch((rollbackError: Error) => {
        broken = rollbackError;
      });
      if (error instanceof WaitedForRows)
        throw batch.length === 1 && !broken ? await whoHolds(session, error) : error.cause;
      throw error instanceof RefoldError && !committing ? nothingSent(error) : error;
    } finally {
      session.release(broken);
    }
  }

  async function appendAndFold(
    tx: Queryable,
    batch: readonly CheckedAppend[],
    { lookAhead, apart, pipeline, own }: AppendAndFold,
  ): Promise<AppendOutcome[]> {
    const wanted = wantedBy(batch);
    const touched = wanted.map((projection) => touchedRows(projection, batch));
    const others = projections.filter((projection) => !wanted.includes(projection));
    const guesses = touched.map(({ projection }) => (lookAhead ? lastTables.get(projection.id) : undefined));
    const [, tables, outcomes, ...guessed] = await roundTrip<
      [unknown, (string | null)[], AppendOutcome[], ...(Row[] | null)[]]
    >(pipeline, [
      async () => (own ? tx.query({ text: begin }) : undefined),
      () => enterInline(tx, batch, { touched, others, lockTimeoutMs: own?.lockTimeoutMs }),
      () =>
        appendBatch(
          tx,
          batch.map(({ prepared }) => prepared),
        ),
      ...touched.map(({ projection, keys }, index) => async () => {
        const table = guesses[index];
        return table === undefined || !keys ? null : tableOf(projection, table).load(tx, [...keys.values()]);
      }),
    ]);
    const groups = outcomes.map(
      (outcome, index) => (outcome.kind === 'written' ? (batch[index] as CheckedAppend).recorded(outcome) : []), // one outcome for each
    );
    const last = lastPosition(groups);
    const folded: { projection: Projection; batch: FoldedBatch }[] = [];
    for (const [index, { projection }] of touched.entries()) {
      const tableName = tables[index];
      if (!tableName || last === undefined) continue;
      lastTables.set(projection.id, tableName);
      if (apart) continue;
      const known = tableName === guesses[index] ? (guessed[index] ?? null) : null;
      const stored = storedIn(projection, tableName);
      folded.push({ projection: stored, batch: await foldGroups(tx, stored, groups, known) });
    }
    refuseFailed(folded);
    for (const { projection, batch: made } of folded) {
      for (const failure of made.skipped) projection.onError.onSkip?.(failure);
      // Before anything is sent: the commit is sent along with the writes.
      await expectOrder(tx, tableOf(projection, projection.tableName), made.claims);
    }
    const skips = folded.map(({ projection, batch: { skipped } }) => ({ projection, skipped }));
    if (apart && last !== undefined) skips.push(...(await foldAllApart(tx, touched, tables, groups.flat())));
    const writes = folded.flatMap(({ projection, batch: made }) =>
      last === undefined ? [] : writesOf(tx, projection, tableOf(projection, projection.tableName), made, last),
    );
    own?.onCommit();
    await roundTrip(pipeline, [...writes, async () => (own ? tx.query({ text: 'commit' }) : undefined)]);
    for (const { projection, skipped } of skips) if (skipped.length > 0) options.onSkipped?.(projection, skipped);
    return outcomes;
  }

  async function foldAllApart(
    tx: Queryable,
    touched: readonly Touched[],
    tables: readonly (string | null)[],
    events: readonly RecordedEvent[],
  ): Promise<{ projection: Projection; skipped: readonly FoldFailure[] }[]> {
    const skips: { projection: Projection; skipped: readonly FoldFailure[] }[] = [];
    for (const [index, { projection }] of touched.entries()) {
      const tableName = tables[index];
      if (!tableName) continue;
      const wanted = events.filter((event) => wants(projection, event));
      const stored = storedIn(projection, tableName);
      const { skipped, refused } = await foldApart(tx, stored, tableOf(projection, tableName), wanted, freeze);
      if (refused) throw new Refused(new Map([[0, refusedBy(projection, refused)]]));
      for (const failure of skipped) projection.onError.onSkip?.(failure);
      skips.push({ projection, skipped });
    }
    return skips;
  }

  /** `known`: the rows, where they were read along with the append. */
  async function foldGroups(
    tx: Queryable,
    projection: Projection,
    groups: readonly (readonly RecordedEvent[])[],
    known: readonly Row[] | null,
  ): Promise<FoldedBatch> {
    const table = tableOf(projection, projection.tableName);
    const wanted = groups.map((events) => events.filter((event) => wants(projection, event)));
    const { policy } = projection.onError;
    const keys = known && policy !== 'dead-letter' ? null : keysTouched(projection, wanted.flat());
    const rows = known ?? (keys && keys.size > 0 ? await table.load(tx, [...keys.values()]) : []);
    const blocked =
      policy === 'dead-letter' && keys ? await readBlockedAmong(tx, projection.tableName, [...keys.keys()]) : [];
    const byKey = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    return foldBatch(projection, wanted, byKey, { freeze, blocked });
  }

  function tableOf(projection: Projection, tableName: string): ReadTable {
    const name = `${projection.id} ${tableName}`;
    const known = readTables.get(name) ?? createReadTable(storedIn(projection, tableName), readSchema);
    readTables.set(name, known);
    return known;
  }

  /** Again without those that are refused, until the rest is written. */
  async function append(batch: readonly CheckedAppend[], lockTimeoutMs?: number): Promise<AppendOutcome[]> {
    const outcomes: AppendOutcome[] = [];
    let left = batch.map((one, index) => ({ one, index }));
    while (left.length > 0) {
      try {
        const appends = left.map(({ one }) => one);
        const written = await untilEntered((lookAhead) =>
          aroundRefusals(appends, (apart) => inOwnTransaction(appends, lockTimeoutMs, { lookAhead, apart })),
        );
        for (const [index, outcome] of written.entries()) outcomes[left[index]?.index ?? 0] = outcome;
        break;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        for (const [index, cause] of error.appends)
          outcomes[left[index]?.index ?? 0] = { kind: 'refused', error: cause };
        left = left.filter((_, index) => !error.appends.has(index));
      }
    }
    return outcomes;
  }

  /** Of several appends, whoever joined them finds the one that it is. */
  async function aroundRefusals<T>(
    appends: readonly CheckedAppend[],
    work: (apart: boolean) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(false);
    } catch (error) {
      if (appends.length > 1 || !isRowRefusal(error)) throw error;
      return work(true);
    }
  }

  /** Nothing was written where a table that was asked for along with the append is gone, or where a version was left meanwhile: again then. */
  async function untilEntered<T>(work: (lookAhead: boolean) => Promise<T>): Promise<T> {
    for (let lookAhead = true; ; ) {
      try {
        return await work(lookAhead);
      } catch (error) {
        const sqlState = sqlStateOf(error);
        if (sqlState === undefinedTable && lookAhead) lookAhead = false;
        else if (sqlState !== leftMeanwhile) throw error;
      }
    }
  }

  return {
    concerns: (batch) =>
      batch.some(({ prepared }) =>
        prepared.parts.some(({ family }) =>
          projections.some(({ filter }) => filter.some((one) => one.family === family)),
        ),
      ),
    append,
    async appendWithin(tx, one) {
      try {
        const [outcome] = await untilEntered((lookAhead) =>
          aroundRefusals([one], (apart) => savepoint(tx, () => appendAndFold(tx, [one], { lookAhead, apart }))),
        );
        return outcome as AppendOutcome; // one for each append
      } catch (error) {
        const cause = error instanceof Refused ? error.appends.get(0) : undefined;
        if (cause) return { kind: 'refused', error: cause };
        if (error instanceof WaitedForRows) throw await whoHolds(tx, error);
        throw error;
      }
    },
  };
}

// Between the append and the commit, streams, rows and the horizon are held. A process that is frozen or vanishes there must not hold them for
// longer: the server rolls the append back.
const begin = 'begin isolation level read committed; set local idle_in_transaction_session_timeout = 5000';
const undefinedTable = '42P01';
// As refold.refuse_left() says; in a READ COMMITTED transaction nothing else does.
const leftMeanwhile = '40001';

interface AppendAndFold {
  /** Whether rows are asked for where they were at the last append, along with this one. */
  readonly lookAhead: boolean;
  /** Whether the events, of one append, are folded and written one by one, since the database refused one of their rows. */
  readonly apart: boolean;
  readonly pipeline?: Pipeline | undefined;
  /** Absent within a transaction of the caller's. */
  readonly own?: { readonly lockTimeoutMs: number | undefined; onCommit(): void };
}

function lastPosition(groups: readonly (readonly RecordedEvent[])[]): RecordedEvent['position'] | undefined {
  return groups.findLast((events) => events.length > 0)?.at(-1)?.position;
}

/** Some appends of a batch can't be folded. Nothing of the batch is to be written. */
class Refused extends Error {
  readonly appends: ReadonlyMap<number, RefoldError>;

  constructor(appends: ReadonlyMap<number, RefoldError>) {
    super('refused');
    this.appends = appends;
  }
}

function refuseFailed(folded: readonly { projection: Projection; batch: FoldedBatch }[]): void {
  const appends = new Map<number, RefoldError>();
  for (const {
    projection,
    batch: { refused },
  } of folded) {
    for (const [index, error] of refused) {
      if (!appends.has(index)) appends.set(index, refusedBy(projection, error));
    }
  }
  if (appends.size > 0) throw new Refused(appends);
}

function refusedBy({ id }: Projection, error: RefoldError): RefoldError {
  const message = `${error.message} Nothing was appended, because the rows of ${id} commit with the append; mend it, or declare another 'onError'.`;
  return new RefoldError(error.code, message, { ...error.fields }, { cause: error.cause });
}
