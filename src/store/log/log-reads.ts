import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Database } from '../postgres/database.ts';
import type { Queryable } from '../statements/statement.ts';
import { type LogHead, readHead, readHorizon, readLogHead } from './horizon.ts';
import { createPageDecoder } from './page-decoder.ts';
import { createReadAhead } from './read-ahead.ts';
import {
  copyPage,
  type LogPage,
  type LogTail,
  type ReadAllOptions,
  type ReadTailOptions,
  readEach,
  readPositions,
  readTail,
} from './read-events.ts';

/** Reads of the whole log, in the order of its positions. */
export interface LogReads {
  /**
   * The position up to which the log is complete: no later statement can see a new event at or below it. It may lie within an append that has just
   * been committed.
   */
  horizon(): Promise<GlobalPosition>;
  /**
   * The horizon, and whether the log still holds the known position, judged by the position's anchor. For readers that store a position and
   * resume from it.
   */
  readHead(known: GlobalPosition | null): Promise<LogHead>;
  /** The highest position that was assigned. */
  head(): Promise<GlobalPosition>;
  readAt(position: GlobalPosition): Promise<RecordedEvent | undefined>;
  /** The events at these positions, in log order. Only a page of them is in memory. */
  readEach(positions: readonly GlobalPosition[]): AsyncGenerator<RecordedEvent>;
  /** A page of the whole log, filtered, in log order, up to a horizon. */
  readAll(options: ReadAllOptions): Promise<LogPage>;
  /**
   * The horizon and the first page of {@link LogReads.readAll} up to it, in one round trip. For readers at the head that poll again. If the
   * page ends before the horizon, continue with `readAll`.
   *
   * @param within a transaction to read in. It must be READ COMMITTED.
   */
  readTail(options: ReadTailOptions, within?: Queryable): Promise<LogTail>;
}

export function createLogReads(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  onSlowEvent?: OnSlowEvent,
): LogReads {
  const decode = createPageDecoder(families, onSlowEvent);
  return {
    horizon: () => readHorizon(db),
    readHead: (known) => readLogHead(db, known),
    head: () => readHead(db),
    readAt: async (position) => (await readPositions(db, families, [position]))[0],
    readEach: (positions) => readEach(db, families, positions),
    readAll: createReadAhead(
      (options) => copyPage(db, families, options),
      ({ rows }) => decode(rows),
    ),
    readTail: (options, within = db) => readTail(within, families, options, onSlowEvent),
  };
}
