import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { callOnSkip } from '../../projections/fold/on-skip.ts';
import { keyText, type Projection, storedIn } from '../../projections/projection/projection.ts';
import { type AppendLock, tableLock } from '../log/append-locks.ts';
import type { CheckedAppend } from '../log/append-request.ts';
import { type AppendOutcome, appendBatch } from '../log/append-statement.ts';
import type { Database } from '../postgres/database.ts';
import { isRefusedValue, nothingSent } from '../postgres/database-errors.ts';
import { readBlockedAmong } from '../processors/dead-letters.ts';
import { type Pipeline, roundTrip } from '../statements/round-trip.ts';
import { savepoint } from '../statements/savepoint.ts';
import type { Queryable } from '../statements/statement.ts';
import { createReadTable, type ReadTable } from '../tables/read-table.ts';
import { isRowRefusal } from '../tables/refused-rows.ts';
import { expectOrder } from '../tables/write-rows.ts';
import { enterInline, locksToFold, type Touched, touchedRows, WaitedForRows, wants, whoHolds } from './enter-inline.ts';
import { foldApart } from './fold-apart.ts';
import { type FoldedBatch, foldBatch, keysTouched, type LeftOutOfRows, writesOf } from './folded-batch.ts';
import { beginAppend, commitAppend } from './own-transaction.ts';
import { pacedFold } from './paced-fold.ts';
import { Refused, refusedBy, refuseFailed } from './refused-appends.ts';
import { untilEntered } from './until-entered.ts';

export interface InlineAppendsOptions {
  /** Separate connections for appends that fold, preferably with pipelining. */
  readonly db: Database;
  readonly readSchema: string;
  /** The inline versions that this process declares. */
  readonly projections: readonly Projection[];
  /** Freezes rows and events. An impure `evolve` then throws at its mutation. */
  readonly freeze: boolean;
  /** Makes appends leave the versions whose tables are damaged. Called if a statement that folds was refused because of its table. */
  readonly leaveDamaged?: (() => Promise<void>) | undefined;
  /** Called with the events that a batch left out of the rows of a version. */
  onLeftOut?(projection: Projection, leftOut: LeftOutOfRows): void;
  /** Returns what receives the slow events of a version. */
  onSlowEvent?(projection: Projection): OnSlowEvent | undefined;
}

/** Appends events that inline projections handle, and writes the rows in the same transaction. */
export interface InlineAppends {
  /**
   * Whether inline projections may handle events of the batch. If not, the plain append checks in the database that it misses no version.
   */
  concerns(batch: readonly CheckedAppend[]): boolean;
  /** The locks that an append takes besides those of the log. */
  locksOf(append: CheckedAppend): AppendLock[];
  /**
   * Like `appendBatch`, and also writes the rows of the live versions. If a version with the policy `stop` cannot fold an append, that
   * append is refused and the others are written.
   */
  append(batch: readonly CheckedAppend[], lockTimeoutMs?: number): Promise<AppendOutcome[]>;
  /** The same for one append in the caller's transaction. If it is refused, the transaction is unchanged and can continue. */
  appendWithin(tx: Queryable, append: CheckedAppend): Promise<AppendOutcome>;
}

export function createInlineAppends(options: InlineAppendsOptions): InlineAppends {
  const { db, readSchema, projections, freeze } = options;
  // The table of each version at the last append. Its rows are read along with the append, before the append returns the current table.
  const lastTables = new Map<string, string>();
  const readTables = new Map<string, ReadTable>();
  const howToFold = (tx: Queryable, projection: Projection) => ({
    freeze,
    ...pacedFold(tx, projection, options.onSlowEvent?.(projection)),
  });
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
      if (error instanceof WaitedForRows) throw error.cause;
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
      async () => (own ? tx.query({ text: beginAppend }) : undefined),
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
      (outcome, index) => (outcome.kind === 'written' ? (batch[index] as CheckedAppend).recorded(outcome) : []), // one outcome for each append
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
      for (const failure of made.skipped) await callOnSkip(projection, failure);
      // Must run before anything is sent: the commit is sent together with the writes.
      await expectOrder(tx, tableOf(projection, projection.tableName), made.claims);
    }
    const leftOut: OfVersion[] = folded.map(({ projection, batch: made }) => ({ projection, ofRows: made }));
    if (apart && last !== undefined) leftOut.push(...(await foldAllApart(tx, touched, tables, groups.flat())));
    const writes = folded.flatMap(({ projection, batch: made }) =>
      last === undefined ? [] : writesOf(tx, projection, tableOf(projection, projection.tableName), made, last),
    );
    own?.onCommit();
    await roundTrip(pipeline, [
      ...writes,
      async () => (own ? tx.query({ text: commitAppend(own.lockTimeoutMs) }) : undefined),
    ]);
    for (const { projection, ofRows } of leftOut) options.onLeftOut?.(projection, ofRows);
    return outcomes;
  }

  async function foldAllApart(
    tx: Queryable,
    touched: readonly Touched[],
    tables: readonly (string | null)[],
    events: readonly RecordedEvent[],
  ): Promise<OfVersion[]> {
    const leftOut: OfVersion[] = [];
    for (const [index, { projection }] of touched.entries()) {
      const tableName = tables[index];
      if (!tableName) continue;
      const wanted = events.filter((event) => wants(projection, event));
      const stored = storedIn(projection, tableName);
      const ofRows = await foldApart(tx, stored, tableOf(projection, tableName), wanted, howToFold(tx, projection));
      if (ofRows.refused) throw new Refused(new Map([[0, refusedBy(projection, ofRows.refused)]]));
      for (const failure of ofRows.skipped) await callOnSkip(projection, failure);
      leftOut.push({ projection, ofRows });
    }
    return leftOut;
  }

  /** `known`: the rows, if they were read along with the append. */
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
    return foldBatch(projection, wanted, byKey, { ...howToFold(tx, projection), blocked, appended: true });
  }

  function tableOf(projection: Projection, tableName: string): ReadTable {
    const name = `${projection.id} ${tableName}`;
    const known = readTables.get(name) ?? createReadTable(storedIn(projection, tableName), readSchema);
    readTables.set(name, known);
    return known;
  }

  /** Repeats without the refused appends until the rest is written. */
  async function append(batch: readonly CheckedAppend[], lockTimeoutMs?: number): Promise<AppendOutcome[]> {
    const outcomes: AppendOutcome[] = [];
    let left = batch.map((one, index) => ({ one, index }));
    while (left.length > 0) {
      try {
        const appends = left.map(({ one }) => one);
        const written = await untilEntered(
          (lookAhead) =>
            aroundRefusals(appends, (apart) => inOwnTransaction(appends, lockTimeoutMs, { lookAhead, apart })),
          options.leaveDamaged,
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

  /** If a batch fails on a row, the caller that joined the appends finds the failing one. A single append is folded event by event. */
  async function aroundRefusals<T>(
    appends: readonly CheckedAppend[],
    work: (apart: boolean) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(false);
    } catch (error) {
      if (appends.length > 1 || !isRowRefusal(error)) throw error;
      // A narrower type of a column refuses values that the declared one takes.
      if (isRefusedValue(error)) await options.leaveDamaged?.();
      return work(true);
    }
  }

  return {
    concerns: (batch) =>
      batch.some(({ prepared }) =>
        prepared.parts.some(({ family }) =>
          projections.some(({ filter }) => filter.some((one) => one.family === family)),
        ),
      ),
    locksOf: (one) =>
      wantedBy([one]).flatMap((projection) => {
        const table = tableLock('inline', readSchema, lastTables.get(projection.id) ?? projection.tableName);
        return [table, ...locksToFold(touchedRows(projection, [one]))];
      }),
    append,
    async appendWithin(tx, one) {
      try {
        const [outcome] = await untilEntered(
          (lookAhead) =>
            aroundRefusals([one], (apart) => savepoint(tx, () => appendAndFold(tx, [one], { lookAhead, apart }))),
          options.leaveDamaged,
        );
        return outcome as AppendOutcome; // one outcome for each append
      } catch (error) {
        const cause = error instanceof Refused ? error.appends.get(0) : undefined;
        if (cause) return { kind: 'refused', error: cause };
        if (error instanceof WaitedForRows) throw await whoHolds(tx, error);
        throw error;
      }
    },
  };
}

interface OfVersion {
  readonly projection: Projection;
  readonly ofRows: LeftOutOfRows;
}

interface AppendAndFold {
  /** Whether rows are read along with the append, from the tables of the last append. */
  readonly lookAhead: boolean;
  /** Whether the events of one append are folded and written one by one, because the database refused one of their rows. */
  readonly apart: boolean;
  readonly pipeline?: Pipeline | undefined;
  /** Undefined within a caller's transaction. */
  readonly own?: { readonly lockTimeoutMs: number | undefined; onCommit(): void };
}

function lastPosition(groups: readonly (readonly RecordedEvent[])[]): RecordedEvent['position'] | undefined {
  return groups.findLast((events) => events.length > 0)?.at(-1)?.position;
}
