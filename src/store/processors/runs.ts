import type { ProcessorKind } from '../server/processor-unit.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/**
 * Returns a CTE over the moved row of a unit, `moved`, which saves a round trip. It adds a batch, or more of one, to the row of its
 * interval. The values are expressions over `moved`, which is empty if the owner is fenced. $1 to $3 identify the unit.
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

/** The throughput of one processor in the last minute. */
export interface Throughput {
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  readonly kind: ProcessorKind;
  readonly eventsPerSecond: number;
  readonly rowsPerSecond: number;
  readonly positionsPerSecond: number;
  /** The share of the time in which it worked, 0 to 1. */
  readonly busyShare: number;
}

const throughputs = refoldTables
  .selectFrom('refold.throughput')
  .select([
    'name',
    'version',
    'partition',
    'kind',
    'events_per_second as eventsPerSecond',
    'rows_per_second as rowsPerSecond',
    'positions_per_second as positionsPerSecond',
    'busy_share as busyShare',
  ])
  .orderBy('name')
  .orderBy('version')
  .orderBy('partition')
  .orderBy('kind');

export function readThroughput(db: Queryable): Promise<Throughput[]> {
  return run(db, throughputs, 'read throughput');
}
