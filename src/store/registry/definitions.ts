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

/** Updates the definition after a change of GraphQL options or events. The table must be unchanged. */
export async function updateDefinition(
  db: Queryable,
  {
    name,
    version,
    definition,
  }: { readonly name: string; readonly version: number; readonly definition: StoredDefinition },
): Promise<void> {
  const json = definitionJson(definition);
  await run(
    db,
    refoldTables
      .updateTable('refold.projections')
      .set({ definition: json })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('definition', 'is distinct from', sql<StoredDefinition>`${json}::jsonb`),
  );
}

/** The text of the column `definition`. The default of a column may be a bigint, which JSON does not support. */
export function definitionJson(definition: StoredDefinition): string {
  return JSON.stringify(definition, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
}
