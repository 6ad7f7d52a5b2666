import { keyText, type Projection } from '../../projections/projection/projection.ts';
import { quoted } from '../statements/identifiers.ts';
import type { Queryable } from '../statements/statement.ts';

/** A row that differs from the expected one. */
export interface Difference {
  /** The row's key as JSON. */
  readonly key: string;
  /** `missing`: not in the table. `surplus`: only in the table. `different`: other values in these columns. */
  readonly kind: 'missing' | 'surplus' | 'different';
  readonly columns: readonly string[];
}

export interface Comparison {
  /** The number of rows in the compared table. */
  readonly rows: number;
  readonly differences: number;
  /** The first differences, by key. */
  readonly samples: readonly Difference[];
}

/** Compares a table with a table of expected rows, in the database. Both have the projection's columns. */
export async function compareTables(
  db: Queryable,
  projection: Projection,
  tables: { readonly expected: string; readonly found: string },
  sampleSize: number,
): Promise<Comparison> {
  const { codec, keyColumns } = projection;
  const sql = (table: string, name: string) => `${table}.${quoted(String(projection.sqlNames[name]))}`;
  const names = Object.keys(projection.columns);
  const [firstKey] = keyColumns as [string]; // a table has a key
  const differs = (name: string) => `${sql('expected', name)} is distinct from ${sql('found', name)}`;
  const [counted] = await db.query<{ rows: bigint }>({ text: `select count(*) as rows from ${tables.found}` });
  const different = await db.query<DifferentRow>({
    text: `
      select
        count(*) over () as "refold differences",
        case
          when ${sql('found', firstKey)} is null then 'missing'
          when ${sql('expected', firstKey)} is null then 'surplus'
          else 'different'
        end as "refold kind",
        array_remove(array[${names.map((name) => `case when ${differs(name)} then '${name}' end`).join(', ')}], null) as "refold columns",
        ${keyColumns.map((name) => `coalesce(${sql('expected', name)}, ${sql('found', name)}) as ${quoted(String(projection.sqlNames[name]))}`).join(', ')}
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
      const kind = row['refold kind'];
      return {
        key: keyText(keyColumns.map((name) => codec.decodeValue(name, row[String(projection.sqlNames[name])]))),
        kind,
        columns: kind === 'different' ? row['refold columns'] : [],
      };
    }),
  };
}

/** A row that differs: the columns of its key, by their SQL names, and what differs. */
type DifferentRow = Readonly<Record<string, unknown>> & {
  readonly 'refold differences': bigint;
  readonly 'refold kind': Difference['kind'];
  readonly 'refold columns': readonly string[];
};
