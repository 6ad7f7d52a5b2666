import { sql } from 'kysely';
import type { CanaryRule } from '../../projections/projection/version-map.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Starts or changes a projection's canary. */
export async function writeCanary(db: Queryable, name: string, version: number, rule: CanaryRule): Promise<void> {
  const serves = {
    version,
    percent: rule.percent,
    header: rule.header?.name ?? null,
    header_value: rule.header?.value ?? null,
  };
  const fresh = {
    started_at: sql<string>`excluded.started_at`,
    operations: 0,
    errors: 0,
    other_operations: 0,
    other_errors: 0,
  };
  await run(
    db,
    refoldTables
      .insertInto('refold.canaries')
      .values({ name, ...serves })
      .onConflict((same) => same.column('name').doUpdateSet({ ...serves, ...fresh })),
  );
}

/** Ends a projection's canary if it is this version or a lower one. Returns the version. */
export async function deleteCanary(db: Queryable, name: string, upTo: number): Promise<number | undefined> {
  const [deleted] = await run(
    db,
    refoldTables
      .deleteFrom('refold.canaries')
      .where('name', '=', name)
      .where('version', '<=', upTo)
      .returning('version'),
  );
  return deleted?.version;
}

/** Ends the canaries of these versions, and of lower ones of the same projections. */
export async function deleteCanaries(
  db: Queryable,
  versions: readonly { readonly name: string; readonly version: number }[],
): Promise<void> {
  await db.query({
    text: `
      delete from refold.canaries as canary
      using unnest($1::text[], $2::integer[]) as ended (name, version)
      where canary.name = ended.name and canary.version <= ended.version`,
    values: [versions.map(({ name }) => name), versions.map(({ version }) => version)],
  });
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
  await run(
    db,
    refoldTables
      .updateTable('refold.canaries')
      .set({
        operations: sql`operations + ${added.operations}`,
        errors: sql`errors + ${added.errors}`,
        other_operations: sql`other_operations + ${added.otherOperations}`,
        other_errors: sql`other_errors + ${added.otherErrors}`,
      })
      .where('name', '=', added.name)
      .where('version', '=', added.version),
  );
}

export async function readCanaryFigures(db: Queryable): Promise<CanaryFigures[]> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.canaries')
      .select(['name', 'version', 'operations', 'errors', 'other_operations', 'other_errors'])
      .orderBy('name'),
  );
  return rows.map(({ name, version, operations, errors, other_operations, other_errors }) => ({
    name,
    version,
    operations: Number(operations),
    errors: Number(errors),
    otherOperations: Number(other_operations),
    otherErrors: Number(other_errors),
  }));
}
