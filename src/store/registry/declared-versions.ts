import { type ColumnsOf, type Queryable, refoldTables, run } from '../statements/statement.ts';
import type { StoredDefinition } from '../statements/stored-json.ts';
import { definitionJson } from './definitions.ts';

export interface NewVersion
  extends ColumnsOf<
    'refold.projections',
    'name' | 'version' | 'table_schema' | 'table_name' | 'table_fingerprint' | 'code_fingerprint' | 'definition'
  > {
  readonly partitions: number;
}

/** Adds versions as `building`, with their processors at the positions after which they begin. */
export async function insertVersions(db: Queryable, ...versions: readonly NewVersion[]): Promise<void> {
  await db.query({
    text: `
      with added as (
        select *
        from json_to_recordset($1) as added (
          name text, version integer, "tableSchema" text, "tableName" text, "tableFingerprint" text, "codeFingerprint" text,
          definition jsonb, partitions integer, "startAfter" bigint
        )
      ), projections as (
        insert into refold.projections
          (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
        select name, version, 'building', "tableSchema", "tableName", "tableFingerprint", "codeFingerprint", definition
        from added
      )
      insert into refold.processors (name, version, partition, partitions, checkpoint)
      select name, version, partition, partitions, "startAfter"
      from added
      cross join generate_series(0, partitions - 1) as partition`,
    values: [versionsJson(versions)],
  });
}

/** The definitions of all versions, by name and version. */
export async function readDefinitions(db: Queryable): Promise<ReadonlyMap<string, StoredDefinition>> {
  const rows = await run(db, refoldTables.selectFrom('refold.projections').select(['name', 'version', 'definition']));
  return new Map(rows.map(({ name, version, definition }) => [`${name}@${version}`, definition]));
}

/** Updates the definitions after changes of GraphQL options or events. The tables must be unchanged. */
export async function updateDefinitions(db: Queryable, versions: readonly NewVersion[]): Promise<void> {
  if (versions.length === 0) return;
  await db.query({
    text: `
      update refold.projections as projection
      set definition = declared.definition
      from json_to_recordset($1) as declared (name text, version integer, definition jsonb)
      where projection.name = declared.name
        and projection.version = declared.version
        and projection.definition is distinct from declared.definition`,
    values: [versionsJson(versions)],
  });
}

function versionsJson(versions: readonly NewVersion[]): string {
  const encoded = versions.map(({ definition, ...version }) => {
    const startAfter = definition.startAfter ?? '0';
    return `${JSON.stringify({ ...version, startAfter }).slice(0, -1)},"definition":${definitionJson(definition)}}`;
  });
  return `[${encoded.join(',')}]`;
}

/** Resets a version to the position after which it begins, with new fingerprints. Fences its current owner. */
export async function resetVersion(db: Queryable, version: NewVersion): Promise<void> {
  await db.query({
    text: `
      with reset as (
        update refold.processors
        set checkpoint = $7, anchor = null, epoch = epoch + 1, status = 'idle', error = null, floors = null, rewrites = 0, events_folded = 0, rows_written = 0, events_skipped = 0, retrying = null, updated_at = now()
        where name = $1 and version = $2
      ), forgotten as (
        delete from refold.changes where name = $1 and version = $2
      )
      update refold.projections
      set table_fingerprint = $3, code_fingerprint = $4, definition = $5, table_name = $6, generation = generation + 1
      where name = $1 and version = $2`,
    values: [
      version.name,
      version.version,
      version.tableFingerprint,
      version.codeFingerprint,
      definitionJson(version.definition),
      version.tableName,
      version.definition.startAfter ?? '0',
    ],
  });
}

/** Records the code that built the version's rows. */
export async function recordCode(
  db: Queryable,
  { name, version, codeFingerprint }: Pick<NewVersion, 'name' | 'version' | 'codeFingerprint'>,
): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.projections')
      .set({ code_fingerprint: codeFingerprint })
      .where('name', '=', name)
      .where('version', '=', version),
  );
}
