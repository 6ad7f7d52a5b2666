import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { distributedWith } from '../statements/placed.ts';
import type { Queryable } from '../statements/statement.ts';

/** A unit whose rows have another position on a worker than in the registry. */
export interface DifferingUnit extends ProcessorUnit {
  readonly registered: GlobalPosition;
  /** That of the partition that is furthest behind. */
  readonly checkpoint: GlobalPosition;
  /** How many rewrites the rows have that the registry does not have; negative if they lack some. */
  readonly rewrites: bigint;
}

/**
 * Reads which distributed versions and rebuilds have rows of another position than the registry says: for a moment, those that are being written;
 * for longer, those of a worker that has lost transactions. The registry is read first.
 */
export function readDifferingUnits(db: Queryable): Promise<DifferingUnit[]> {
  return db.query<DifferingUnit>({
    name: 'read differing units',
    text: `
      with registered as materialized (
        select 'processor' as kind, processor.name, processor.version, processor.partition, table_name, checkpoint, rewrites
        from refold.processors as processor
        join refold.projections as projection on projection.name = processor.name and projection.version = processor.version
        where partitions > 1 and state <> 'retired'
        union all
        -- one unit for all partitions
        select 'rebuild', name, version, null, table_name, checkpoint, 0
        from refold.rebuilds
        where form = 'beside'
      )
      select
        kind,
        name,
        version,
        coalesce(registered.partition, 0) as partition,
        registered.checkpoint as registered,
        min(placed.checkpoint) as checkpoint,
        min(placed.rewrites - registered.rewrites) as rewrites
      from registered
      join ${distributedWith} as placed
        on placed.table_name = registered.table_name
        and placed.partition = coalesce(registered.partition, placed.partition)
      where placed.checkpoint <> registered.checkpoint or placed.rewrites <> registered.rewrites
      group by kind, name, version, registered.partition, registered.checkpoint`,
  });
}
