import type { Projection } from '../../projections/projection/projection.ts';
import { qualified, quoted } from '../statements/identifiers.ts';
import type { Queryable } from '../statements/statement.ts';

export interface TableDiff {
  readonly rows: number;
  /** The number of rows that only the older version has; below, those that only the newer one has. */
  readonly onlyOlder: number;
  readonly onlyNewer: number;
  /** For each shared column, the number of rows in which it differs. */
  readonly columns: Readonly<Record<string, number>>;
  readonly samples: readonly RowDiff[];
}

export interface RowDiff {
  readonly key: readonly unknown[];
  /** Null if the version does not have the row. */
  readonly older: Readonly<Record<string, unknown>> | null;
  readonly newer: Readonly<Record<string, unknown>> | null;
}

/** The columns that two versions share: with the same name and kind, without key columns. */
export function sharedColumns(older: Projection, newer: Projection): string[] {
  return Object.keys(newer.columns).filter(
    (name) => !newer.keyColumns.includes(name) && older.columns[name]?.type.kind === newer.columns[name]?.type.kind,
  );
}

/** Compares two versions' tables row by row in PostgreSQL: one statement for the counts, one for the samples. */
export async function diffTables(
  db: Queryable,
  readSchema: string,
  older: Projection,
  newer: Projection,
  sampleSize: number,
): Promise<TableDiff> {
  const shared = sharedColumns(older, newer);
  const sql = (version: Projection, name: string) =>
    `${version === older ? 'older' : 'newer'}.${quoted(String(version.sqlNames[name]))}`;
  const key = newer.keyColumns;
  const joined = `
    from ${qualified(readSchema, older.tableName)} as older
    full join ${qualified(readSchema, newer.tableName)} as newer on ${key.map((name) => `${sql(older, name)} = ${sql(newer, name)}`).join(' and ')}`;
  const [onlyNewer, onlyOlder] = [older, newer].map((version) => `${sql(version, key[0] as string)} is null`); // a version has a key
  const inBoth = `not (${onlyOlder}) and not (${onlyNewer})`;
  const differs = (name: string) => `${sql(older, name)} is distinct from ${sql(newer, name)}`;
  const [counts] = await db.query<Record<string, bigint>>({
    text: `
      select
        count(*) as rows,
        count(*) filter (where ${onlyOlder}) as "onlyOlder",
        count(*) filter (where ${onlyNewer}) as "onlyNewer"
        ${shared.map((name, index) => `, count(*) filter (where ${inBoth} and ${differs(name)}) as "column${index}"`).join('')}
      ${joined}`,
  });
  const object = (version: Projection) =>
    `jsonb_build_object(${shared.map((name) => `'${name}', ${sql(version, name)}`).join(', ')})`;
  const samples = await db.query<RowDiff>({
    text: `
      select
        jsonb_build_array(${key.map((name) => `coalesce(${sql(older, name)}, ${sql(newer, name)})`).join(', ')}) as key,
        case when ${onlyNewer} then null else ${object(older)} end as older,
        case when ${onlyOlder} then null else ${object(newer)} end as newer
      ${joined}
      where ${[onlyOlder, onlyNewer, ...shared.map(differs)].map((condition) => `(${condition})`).join(' or ')}
      limit $1`,
    values: [sampleSize],
  });
  return {
    rows: Number(counts?.rows ?? 0),
    onlyOlder: Number(counts?.onlyOlder ?? 0),
    onlyNewer: Number(counts?.onlyNewer ?? 0),
    columns: Object.fromEntries(shared.map((name, index) => [name, Number(counts?.[`column${index}`] ?? 0)])),
    samples,
  };
}
