import type { CanaryRule } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../postgres/statement.ts';

/** Starts or changes a projection's canary. */
export async function writeCanary(db: Queryable, name: string, version: number, rule: CanaryRule): Promise<void> {
  await db.query({
    text: `
      insert into refold.canaries (name, version, percent, header, header_value)
      values ($1, $2, $3, $4, $5)
      on conflict (name) do update
        set
          version = excluded.version,
          percent = excluded.percent,
          header = excluded.header,
          header_value = excluded.header_value,
          started_at = now(),
          operations = 0,
          errors = 0,
          other_operations = 0,
          other_errors = 0`,
    values: [name, version, rule.percent, rule.header?.name ?? null, rule.header?.value ?? null],
  });
}

/** Ends a projection's canary if it is this version or a lower one. Returns the version. */
export async function deleteCanary(db: Queryable, name: string, upTo: number): Promise<number | undefined> {
  const rows = await db.query<{ version: number }>({
    text: 'delete from refold.canaries where name = $1 and version <= $2 returning version',
    values: [name, upTo],
  });
  return rows[0]?.version;
}

/** The statistics of a canary since it started, over all gateways: operations that it served, and operations of other clients. */
export interface CanaryFigures {
  readonly name: string;
  readonly version: number;
  readonly operations: number;
  /** The number of those whose response had errors. */
  readonly errors: number;
  readonly otherOperations: number;
  readonly otherErrors: number;
}

/** Adds the counts of one gateway. Has no effect if the version is no longer a canary. */
export async function addCanaryFigures(db: Queryable, added: CanaryFigures): Promise<void> {
  await db.query({
    text: `
      update refold.canaries
      set
        operations = operations + $3,
        errors = errors + $4,
        other_operations = other_operations + $5,
        other_errors = other_errors + $6
      where name = $1 and version = $2`,
    values: [added.name, added.version, added.operations, added.errors, added.otherOperations, added.otherErrors],
  });
}

export async function readCanaryFigures(db: Queryable): Promise<CanaryFigures[]> {
  return db.query<CanaryFigures>({
    text: `
      select
        name,
        version,
        operations::float8 as operations,
        errors::float8 as errors,
        other_operations::float8 as "otherOperations",
        other_errors::float8 as "otherErrors"
      from refold.canaries
      order by name`,
  });
}
