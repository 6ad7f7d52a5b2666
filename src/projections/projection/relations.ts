import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { Columns } from '../columns/column.ts';

/** A relation from a row to the one row whose key its columns contain. */
export interface OneRelation<From extends string = string> {
  readonly kind: 'one';
  /** The name of a projection. Its served version is used. */
  readonly target: string;
  /** This table's columns, in the order of the target's key columns. */
  readonly from: readonly From[];
  readonly description?: string;
}

/** A relation from a row to all rows that refer to it. */
export interface ManyRelation<From extends string = string> {
  readonly kind: 'many';
  readonly target: string;
  /** The column of this table that the other rows refer to. @default the key */
  readonly from?: From;
  /** The target's column that refers to this row. */
  readonly to: string;
  readonly description?: string;
}

export type RelationOption<From extends string = string> = OneRelation<From> | ManyRelation<From>;

/** A declared relation, checked against its own projection. */
export type Relation = OneRelation | (ManyRelation & { readonly from: string });

/**
 * A relation to one row of another projection, by its key. Null if there is no such row.
 *
 * @example
 * relations: { customer: one('customer_profile', { from: 'customerId' }) }
 */
export function one<const From extends string>(
  target: string,
  options: { readonly from: From | readonly From[]; readonly description?: string },
): OneRelation<From> {
  const { from, ...others } = options;
  return Object.freeze({ kind: 'one', target, ...others, from: typeof from === 'string' ? [from] : [...from] });
}

/**
 * A relation to all rows of another projection that refer to a row of this one: a list with filters, orders and pages. Refold creates an
 * index on the referring column.
 *
 * @example
 * relations: { carts: many('cart_summary', { to: 'customerId' }) }
 */
export function many(
  target: string,
  options: { readonly to: string; readonly description?: string },
): ManyRelation<never>;
export function many<const From extends string>(
  target: string,
  options: { readonly to: string; readonly from: From; readonly description?: string },
): ManyRelation<From>;
export function many(
  target: string,
  options: { readonly to: string; readonly from?: string; readonly description?: string },
): ManyRelation {
  return Object.freeze({ kind: 'many', target, ...options });
}

/** Checks the relations of one projection without looking at their targets. @throws RefoldError `INVALID_DECLARATION` */
export function ownRelations(
  subject: string,
  table: Columns,
  keyColumns: readonly string[],
  given: Readonly<Record<string, RelationOption>> = {},
): Readonly<Record<string, Relation>> {
  const checked = Object.entries(given).map(([name, relation]) => {
    checkName(subject, table, name);
    if (relation?.kind !== 'one' && relation?.kind !== 'many')
      throw invalidDeclaration(subject, `relation '${name}' was not made with one(…) or many(…).`);
    const made = relation.kind === 'one' ? relation : { ...relation, from: keyOr(subject, name, keyColumns, relation) };
    for (const column of fromColumns(made)) {
      if (!Object.hasOwn(table, column))
        throw invalidDeclaration(
          subject,
          `relation '${name}' comes from a column '${column}' that the table does not declare.${closest(column, Object.keys(table))}`,
        );
    }
    return [name, Object.freeze(made)] as const;
  });
  return Object.freeze(Object.fromEntries(checked));
}

/** The columns of a row that are needed to follow the relation. */
export function fromColumns({ from }: Relation): readonly string[] {
  return typeof from === 'string' ? [from] : from;
}

function checkName(subject: string, table: Columns, name: string): void {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name) || name in Object.prototype)
    throw invalidDeclaration(subject, `relation '${name}' needs a camelCase name such as 'customer'.`);
  if (Object.hasOwn(table, name))
    throw invalidDeclaration(subject, `'${name}' is a column and a relation; rename one of them.`);
}

function keyOr(subject: string, name: string, keyColumns: readonly string[], { from }: ManyRelation): string {
  const [key, ...others] = keyColumns;
  if (from !== undefined) return from;
  if (key !== undefined && others.length === 0) return key;
  throw invalidDeclaration(
    subject,
    `relation '${name}' must name the column that the other rows refer to, because the key has several: { from: '${key}', … }.`,
  );
}
