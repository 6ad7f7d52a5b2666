import { sql } from 'kysely';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { StoredDefinition } from '../statements/stored-json.ts';

/** A version with its stored definition. */
export interface DefinedVersion {
  readonly version: number;
  readonly tableName: string;
  readonly definition: StoredDefinition;
}

/** The highest active version of a projection. */
export async function highestActive(db: Queryable, name: string): Promise<DefinedVersion | undefined> {
  const [highest] = await run(
    db,
    refoldTables
      .selectFrom('refold.projections')
      .select(['version', 'table_name as tableName', 'definition'])
      .where('name', '=', name)
      .where('state', '=', 'active')
      .orderBy('version', 'desc')
      .limit(1),
  );
  return highest;
}

/** The tables of the highest active versions of these projections. A projection without an active version is left out. */
export async function highestActiveTables(
  db: Queryable,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.projections')
      .select(['name', 'table_name as tableName'])
      .where('name', '=', sql<string>`any (${names}::text[])`)
      .where('state', '=', 'active')
      .orderBy('version'),
  );
  return new Map(rows.map(({ name, tableName }) => [name, tableName]));
}

/** The stored definition of a version; undefined if the registry does not contain it. */
export async function readDefinition(
  db: Queryable,
  name: string,
  version: number,
): Promise<StoredDefinition | undefined> {
  const [found] = await run(
    db,
    refoldTables
      .selectFrom('refold.projections')
      .select('definition')
      .where('name', '=', name)
      .where('version', '=', version),
  );
  return found?.definition;
}

/** The text of the column `definition`. The default of a column may be a bigint, which JSON does not support. */
export function definitionJson(definition: StoredDefinition): string {
  return JSON.stringify(definition, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
}
