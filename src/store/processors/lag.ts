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
  const log = db.elsewhere?.log;
  return log ? readLagApart(db, log) : run(db, lags, 'read lag');
}

// Positions that one processor visits at most.
const positionsOfOne = 10_000;

/** The same, if the log is in another database. @param positions that all processors visit together @default each visits its own */
async function readLagApart(store: Queryable, log: Queryable, positions?: number): Promise<Lag[]> {
  const processors = await store.query<object>({
    name: 'read processors for lag',
    text: `
      select
        name,
        version,
        partition,
        checkpoint::text as checkpoint,
        array(
          select (filter ->> 'family') || '.' || type
          from jsonb_array_elements(definition -> 'filter') filter
          cross join jsonb_array_elements_text(filter -> 'types') type
        ) as wanted
      from refold.projections
      join refold.processors using (name, version)
      where state <> 'retired'`,
  });
  const share = positions === undefined ? positionsOfOne : Math.max(10, Math.floor(positions / processors.length));
  return log.query<Lag>({
    name: 'read lag of processors',
    text: `
      select
        name,
        version,
        partition,
        greatest(head - checkpoint, 0) as positions,
        events,
        exact,
        coalesce(greatest(extract(epoch from clock_timestamp() - oldest), 0), 0)::float8 as seconds
      from json_to_recordset($1) as processor (name text, version integer, partition integer, checkpoint bigint, wanted text[])
      cross join lateral (select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head) as log
      cross join lateral refold.unread(checkpoint, wanted, $2) as unread
      order by name collate "C", version, partition`,
    values: [JSON.stringify(processors), Math.min(positionsOfOne, share)],
  });
}

/**
 * Like {@link readLag}, but visits so many positions of the log in total, however many versions are behind: each processor counts as far as its
 * share goes.
 */
export function readLagWithin(db: Queryable, positions: number): Promise<Lag[]> {
  const log = db.elsewhere?.log;
  if (log) return readLagApart(db, log, positions);
  return db.query<Lag>({
    name: 'read lag within',
    text: `
      with processors as materialized (
        select
          processor.name,
          processor.version,
          partition,
          refold.reached(processor.name, processor.version, checkpoint) as checkpoint,
          array(
            select (filter ->> 'family') || '.' || type
            from jsonb_array_elements(definition -> 'filter') as filter
            cross join jsonb_array_elements_text(filter -> 'types') as type
          ) as wanted
        from refold.projections as projection
        join refold.processors as processor on processor.name = projection.name and processor.version = projection.version
        where state <> 'retired'
      ), log as (
        select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head
      )
      select
        name,
        version,
        partition,
        greatest(head - checkpoint, 0) as positions,
        events,
        exact,
        coalesce(greatest(extract(epoch from clock_timestamp() - oldest), 0), 0)::float8 as seconds
      from processors
      cross join log
      cross join lateral refold.unread(
        checkpoint,
        wanted,
        least(10000, greatest(10, $1 / (select count(*)::integer from processors)))
      ) as unread
      order by name, version, partition`,
    values: [positions],
  });
}
