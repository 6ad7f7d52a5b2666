import type { Queryable } from '../postgres/statement.ts';

/** How far one processor is behind the log. */
export interface Lag {
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  /** Between its checkpoint and the last position drawn; holes, and events of other types count. */
  readonly positions: bigint;
  /** Events that it wants and has yet to fold: exact, or of the first 10,000 positions only. */
  readonly events: bigint;
  readonly exact: boolean;
  /** Age of the first of them; 0 where there is none. */
  readonly seconds: number;
}

/** Of every processor of a version that is maintained. Looks at a bounded part of the log, by its key. */
export function readLag(db: Queryable): Promise<Lag[]> {
  return db.query<Lag>({
    name: 'read lag',
    text: `
      select name, version, partition, positions, events, exact, seconds
      from refold.lag
      order by name, version, partition`,
  });
}
