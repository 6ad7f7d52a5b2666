import { keyText, type Projection } from '../../projections/declaration/projection.ts';
import type { Queryable } from '../postgres/statement.ts';

/** A row that is not what it should be. */
export interface Difference {
  /** The row's key as JSON. */
  readonly key: string;
  /** `missing` in the table, `surplus` in the table, or with other values in these columns. */
  readonly kind: 'missing' | 'surplus' | 'different';
  readonly columns: readonly string[];
}

export interface Comparison {
  /** Rows of the table that is compared. */
  readonly rows: number;
  readonly differences: number;
  /** The first of them, by key. */
  readonly samples: readonly Difference[];
}

/** Compares a table with one that holds what it should, both with the columns of the projection, in the database. */
export async function compareTables(
  db: Queryable,
  projection: Projection,
  tables: { readonly expected: string; readonly found: string },
  sampleSize: number,
): Promise<Comparison> {
  const { codec, keyColumns } = projection;
  const sql = (table: string, name: string) => `${table}."${projection.sqlNames[name]}"`;
  const names = Object.keys(projection.columns);
  const [firstKey] = keyColumns as [string]; // a table has a key
  const differs = (name: string) => `${sql('expected', name)} is distinct from ${sql('found', name)}`;
  const [counted] = await db.query<{ rows: bigint }>({ text: `select count(*) as rows from ${tables.found}` });
  const different = await db.query<Record<string, unknown>>({
    text: `
      select
        count(*) over () as "refold differences",
        case
          when ${sql('found', firstKey)} is null then 'missing'
          when ${sql('expected', firstKey)} is null then 'surplus'
          else 'different'
        end as "refold kind",
        array_remove(array[${names.map((name) => `case when ${differs(name)} then '${name}' end`).join(', ')}], null) as "refold columns",
        ${keyColumns.map((name) => `coalesce(${sql('expected', name)}, ${sql('found', name)}) as "${projection.sqlNames[name]}"`).join(', ')}
      from ${tables.expected} as expected
      full join ${tables.found} as found
        on ${keyColumns.map((name) => `${sql('expected', name)} = ${sql('found', name)}`).join(' and ')}
      where ${names.map(differs).join(' or ')}
      order by ${keyColumns.map((name) => `coalesce(${sql('expected', name)}, ${sql('found', name)})`).join(', ')}
      limit $1`,
    values: [sampleSize],
  });
  return {
    rows: Number(counted?.rows ?? 0),
    differences: Number(different[0]?.['refold differences'] ?? 0),
    samples: different.map((row) => {
      const kind = row['refold kind'] as Difference['kind']; // the three of the statement
      return {
        key: keyText(keyColumns.map((name) => codec.decodeValue(name, row[String(projection.sqlNames[name])]))),
        kind,
        columns: kind === 'different' ? (row['refold columns'] as string[]) : [], // texts, of the statement
      };
    }),
  };
}
