import type { Queryable } from '../postgres/statement.ts';
import type { ProcessorKind } from '../server/processor-unit.ts';

/**
 * Part of a statement about a unit's row, `moved`, so that it costs no round trip: adds a batch, or more of one, to its interval's row. What
 * is added are expressions over `moved`, which is empty where the fence has closed. $1 to $3 name the unit.
 */
export function insertRun(
  kind: ProcessorKind,
  added: Readonly<Record<'from' | 'to' | 'batches' | 'events' | 'rows' | 'busyMs', string>>,
): string {
  return `
        insert into refold.runs as run
          (name, version, partition, kind, started_at, ended_at, from_position, to_position, batches, events, rows, busy_ms)
        select
          $1, $2, $3, '${kind}', date_bin('10 seconds', clock_timestamp(), 'epoch'), clock_timestamp(),
          ${added.from}, ${added.to}, ${added.batches}, ${added.events}, ${added.rows}, ${added.busyMs}
        from moved
        on conflict (name, version, partition, kind, started_at) do update
          set
            ended_at = excluded.ended_at,
            to_position = greatest(run.to_position, excluded.to_position),
            batches = run.batches + excluded.batches,
            events = run.events + excluded.events,
            rows = run.rows + excluded.rows,
            busy_ms = run.busy_ms + excluded.busy_ms`;
}

/** What one processor has done in the last minute. */
export interface Throughput {
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  readonly kind: ProcessorKind;
  readonly eventsPerSecond: number;
  readonly rowsPerSecond: number;
  readonly positionsPerSecond: number;
  /** Share of the time in which it worked, 0 to 1. */
  readonly busyShare: number;
}

export function readThroughput(db: Queryable): Promise<Throughput[]> {
  return db.query<Throughput>({
    name: 'read throughput',
    text: `
      select
        name,
        version,
        partition,
        kind,
        events_per_second as "eventsPerSecond",
        rows_per_second as "rowsPerSecond",
        positions_per_second as "positionsPerSecond",
        busy_share as "busyShare"
      from refold.throughput
      order by name, version, partition, kind`,
  });
}
