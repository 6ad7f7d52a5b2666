import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type Column, type Columns, isContainer } from '../columns/column.ts';
import { oversizedIndex } from '../columns/text-limits.ts';

/**
 * Checks a table's columns and returns the names of its key columns, in order of declaration.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export function checkTable(subject: string, table: Columns): readonly string[] {
  const names = Object.keys(table);
  for (const name of names) {
    checkName(subject, 'column', name);
    checkColumn(subject, name, table[name] as Column); // `name` is one of its keys
    checkWithin(subject, name, table);
  }
  const keyColumns = names.filter((name) => table[name]?.flags.primaryKey);
  if (keyColumns.length === 0)
    throw invalidDeclaration(subject, `the table has no key; mark one column, such as 't.text().primaryKey()'.`);
  // PostgreSQL's limit of columns in an index.
  if (keyColumns.length > 32) throw invalidDeclaration(subject, 'more than 32 key columns.');
  const oversized = oversizedIndex(table, keyColumns);
  if (oversized)
    throw invalidDeclaration(
      subject,
      `the index of '${oversized.join("', '")}' could hold more bytes than PostgreSQL allows. Declare smaller values, such as t.bytes({ maxBytes: 64 }), or leave the index out.`,
    );
  return Object.freeze(keyColumns);
}

/** `cartId` → `cart_id`. Column names are camelCase, so two names never collide. */
export function sqlNames(table: Columns): Readonly<Record<string, string>> {
  return Object.freeze(Object.fromEntries(Object.keys(table).map((name) => [name, snakeCase(name)])));
}

// PostgreSQL truncates longer names.
const longestSqlName = 63;
const systemColumns = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid'];

function checkName(subject: string, kind: 'column' | 'field', name: string): void {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name))
    throw invalidDeclaration(
      subject,
      `${kind} '${name}' is not camelCase (letters and digits, such as 'totalAmount').`,
    );
  if (name in Object.prototype)
    throw invalidDeclaration(subject, `${kind} '${name}' has a name that every JavaScript object has; choose another.`);
  if (kind === 'field') return;
  const sql = snakeCase(name);
  if (sql.length > longestSqlName)
    throw invalidDeclaration(
      subject,
      `column '${name}' is '${sql}' in SQL, ${sql.length} characters; ${longestSqlName} are the most.`,
    );
  if (systemColumns.includes(sql))
    throw invalidDeclaration(subject, `column '${name}' has a name that PostgreSQL keeps for itself; choose another.`);
}

function checkColumn(subject: string, name: string, column: Column): void {
  checkMade(subject, `column '${name}'`, column);
  const { type, flags } = column;
  if (isContainer(column) && (flags.primaryKey || flags.unique))
    throw invalidDeclaration(
      subject,
      `column '${name}' is ${type.kind}; ${flags.primaryKey ? 'a key' : 'a unique index'} needs a scalar column.`,
    );
  if (flags.search && type.kind !== 'text')
    throw invalidDeclaration(
      subject,
      `column '${name}' is ${type.kind}; 'search' is for text. Leave it out: .index().`,
    );
  if (flags.long && type.kind !== 'text')
    throw invalidDeclaration(subject, `column '${name}' is ${type.kind}; 'long' is for text. Leave it out: .index().`);
  if (flags.long && (flags.primaryKey || flags.unique))
    throw invalidDeclaration(
      subject,
      `column '${name}' is ${flags.primaryKey ? 'part of the key' : 'unique'} and long; keys and unique values are limited, because an index holds them as a whole. Leave out 'long'.`,
    );
  if (flags.primaryKey && (flags.nullable || flags.hasDefault))
    throw invalidDeclaration(subject, `key column '${name}' can't be nullable or have a default.`);
  if (flags.primaryKey && type.kind === 'decimal')
    throw invalidDeclaration(
      subject,
      `key column '${name}' is a decimal; use text, uuid, date, an integer or an enum.`,
    );
  checkInside(subject, name, column);
}

function checkWithin(subject: string, name: string, table: Columns): void {
  const within = table[name]?.flags.within;
  if (within === undefined) return;
  const names = Object.keys(table);
  const other = Object.hasOwn(table, within) ? table[within] : undefined;
  if (!other)
    throw invalidDeclaration(
      subject,
      `column '${name}' is unique within '${within}', which the table does not declare.${closest(within, names)}`,
    );
  if (within === name)
    throw invalidDeclaration(subject, `column '${name}' is unique within itself; name another column.`);
  if (other.flags.long)
    throw invalidDeclaration(
      subject,
      `column '${name}' is unique within '${within}', which is long; an index holds both as a whole. Declare '${within}' with .index().`,
    );
  if (isContainer(other))
    throw invalidDeclaration(
      subject,
      `column '${name}' is unique within '${within}', which is ${other.type.kind}; name a scalar column.`,
    );
}

/** Fields of objects and items of lists are parts of one column. They cannot be keys or have indexes. */
function checkInside(subject: string, path: string, { type }: Column): void {
  const inside: readonly (readonly [string, Column])[] =
    type.kind === 'object'
      ? Object.entries(type.fields).map(([name, field]) => [`${path}.${name}`, field])
      : type.kind === 'list'
        ? [[`${path}[]`, type.item]]
        : [];
  if (type.kind === 'object') for (const name of Object.keys(type.fields)) checkName(subject, 'field', name);
  for (const [partPath, part] of inside) {
    checkMade(subject, `'${partPath}'`, part);
    if (part.flags.index)
      throw invalidDeclaration(
        subject,
        `'${partPath}' is part of a column; ${part.flags.primaryKey ? 'a key' : 'an index'} needs a column of the table.`,
      );
    checkInside(subject, partPath, part);
  }
}

function checkMade(subject: string, part: string, column: Column): void {
  if (typeof column !== 'object' || column?.flags === undefined)
    throw invalidDeclaration(subject, `${part} was not made with 't', such as 't.text()'.`);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
