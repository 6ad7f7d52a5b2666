import { sql } from 'kysely';
import { invalidDeclaration } from '../../errors.ts';
import type { Column } from '../../projections/columns/column.ts';
import { textHash } from '../../projections/projection/partition.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { kindInSql } from '../columns/column-sql.ts';
import { quoted } from '../statements/identifiers.ts';
import { builder, onlyRow, type Queryable } from '../statements/statement.ts';

/** Which rows of a batch are merged, by their keys. All, if nothing is set. Keys are written as by `keyText`. */
export interface RowChoice {
  /** Only the keys in one of these shares. */
  readonly within?: readonly KeyShare[];
  /** None of the keys in these shares. */
  readonly without?: readonly KeyShare[];
  readonly only?: readonly string[];
  readonly except?: readonly string[];
}

/** The keys of some partitions, of so many. */
export interface KeyShare {
  readonly of: number;
  readonly partitions: readonly number[];
}

/** A condition over rows, and its values. Their placeholders begin at a number. */
export interface ChosenRows {
  /** Empty if all rows are chosen. */
  readonly condition: string;
  readonly values: readonly unknown[];
}

/**
 * @param rows the name of the rows in the statement
 * @param firstPlaceholder the number of the first value's placeholder
 */
export function chosenRows(
  projection: Projection,
  rows: string,
  { within, without = [], only, except = [] }: RowChoice,
  firstPlaceholder: number,
): ChosenRows {
  const key = keyTextSql(projection, rows);
  const values: unknown[] = [];
  const oneOf = (keys: readonly string[]) => `${key} = any ($${firstPlaceholder + values.push(keys) - 1}::text[])`;
  const conditions = [
    ...(within === undefined ? [] : [`(${within.map((share) => isIn(share, key)).join(' or ') || 'false'})`]),
    ...without.map((share) => `not ${isIn(share, key)}`),
    ...(only === undefined ? [] : [oneOf(only)]),
    ...(except.length === 0 ? [] : [`not ${oneOf(except)}`]),
  ];
  return { condition: conditions.join(' and '), values };
}

function isIn({ of, partitions }: KeyShare, key: string): string {
  return partitions.length === 0
    ? 'false'
    : `(hashtext(${key})::bigint & 4294967295) % ${of} in (${partitions.join(', ')})`;
}

/**
 * A key's text as `keyText` writes it. The values are cast, because the declared SQL may return other types than the table has, and a text
 * depends on its type.
 */
export function keyTextSql({ keyColumns, columns, sqlNames }: Projection, rows: string): string {
  const parts = keyColumns.map((name) => {
    const kind = kindInSql((columns[name] as Column).type); // names of columns
    const value = sql.raw(`cast(${rows}.${quoted(String(sqlNames[name]))} as ${kind.cast})`);
    const text = (kind.encoded?.(value) ?? kind.json(value, false)).map((part) =>
      typeof part === 'string' ? sql.lit(part) : part,
    );
    // A null is refused when it is written, by the partition to which it belongs.
    return sql`coalesce(${sql.join(text, sql` || `)}, 'null')`;
  });
  const text = sql`(('[' || ${sql.join(parts, sql` || ',' || `)} || ']') collate "C")`;
  return text.compile(builder).sql;
}

/**
 * Checks that PostgreSQL hashes a key as {@link textHash} does. Its function is the one of hash indexes, which has never changed since it is
 * in use; but nothing says that it never will.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export async function checkPartitionHash(db: Queryable, subject: string): Promise<void> {
  const samples = ['', '["account-1"]', '["ünïcödé", 1]', '["0123456789"]', '["a longer key of several parts", "b"]'];
  const { hashes } = onlyRow(
    await db.query<{ hashes: readonly string[] }>({
      text: 'select array_agg((hashtext(text)::bigint & 4294967295)::text order by number) as hashes from unnest($1::text[]) with ordinality as sample (text, number)',
      values: [samples],
    }),
  );
  if (samples.some((text, index) => hashes[index] !== String(textHash(text))))
    throw invalidDeclaration(
      subject,
      `this PostgreSQL server hashes texts in another way than Refold, so 'evolveSql' can't be partitioned here. Leave 'partitions' out.`,
    );
}
