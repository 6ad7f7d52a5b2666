import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** How far one processor is behind the log. */
export interface Lag {
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  /** The distance from its checkpoint to the highest assigned position. Gaps and events of other types count. */
  readonly positions: bigint;
  /** The number of events that it handles and has not folded: exact, or only those in the first 10,000 positions. */
  readonly events: bigint;
  readonly exact: boolean;
  /** The age of the oldest of them in seconds; 0 if there are none. */
  readonly seconds: number;
}

const lags = refoldTables
  .selectFrom('refold.lag')
  .select(['name', 'version', 'partition', 'positions', 'events', 'exact', 'seconds'])
  .orderBy('name')
  .orderBy('version')
  .orderBy('partition');

/** The lag of every processor of a version that is not retired. Reads a bounded part of the log, by its key. */
export function readLag(db: Queryable): Promise<Lag[]> {
  return run(db, lags, 'read lag');
}
