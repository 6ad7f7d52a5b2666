import type { ColumnFlags, ColumnKind } from '../../projections/columns/column.ts';
import type { EventFilter, GraphqlNames } from '../../projections/declaration/projection.ts';
import type { Relation } from '../../projections/declaration/relations.ts';
import type { Queryable } from '../postgres/statement.ts';

/** The stored part of a version's declaration, for processes that do not declare the version. */
export interface StoredDefinition {
  readonly columns: readonly {
    readonly name: string;
    readonly sqlName: string;
    readonly type: ColumnKind;
    readonly flags: ColumnFlags;
  }[];
  readonly keyColumns: readonly string[];
  readonly filter: readonly EventFilter[];
  readonly graphql: GraphqlNames;
  /** Missing in definitions stored by the first releases. */
  readonly relations?: Readonly<Record<string, Relation>>;
}

/** A version with its stored definition. */
export interface DefinedVersion {
  readonly version: number;
  readonly tableName: string;
  readonly definition: StoredDefinition;
}

/** The highest active version of a projection. */
export async function highestActive(db: Queryable, name: string): Promise<DefinedVersion | undefined> {
  const rows = await db.query<DefinedVersion>({
    text: `
      select version, table_name as "tableName", definition
      from refold.projections
      where name = $1 and state = 'active'
      order by version desc
      limit 1`,
    values: [name],
  });
  return rows[0];
}

/** The stored definition of a version; undefined if the registry does not contain it. */
export async function readDefinition(
  db: Queryable,
  name: string,
  version: number,
): Promise<StoredDefinition | undefined> {
  const rows = await db.query<Pick<DefinedVersion, 'definition'>>({
    text: 'select definition from refold.projections where name = $1 and version = $2',
    values: [name, version],
  });
  return rows[0]?.definition;
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
  await db.query({
    text: `
      update refold.projections
      set definition = $3
      where name = $1 and version = $2 and definition is distinct from $3::jsonb`,
    values: [name, version, definitionJson(definition)],
  });
}

/** The text of the column `definition`. The default of a column may be a bigint, which JSON does not support. */
export function definitionJson(definition: StoredDefinition): string {
  return JSON.stringify(definition, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
}
