import { RefoldError } from '../../errors.ts';
import type { RowRefusal } from '../../projections/fold/fold-failures.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { reasonOf } from '../../thrown.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { indexName } from './read-table.ts';

/** Thrown if the order in which rows take unique values can only be checked event by event; see `UniqueClaims`. */
export class AmbiguousOrder extends Error {}

/**
 * Whether PostgreSQL refused a row's values. The same rows would be refused again. Class 21 is a duplicate key within a statement, 22 an
 * invalid value, 23 and 44 a constraint, 54000 a text too long for its index. P0 and the others are raised by triggers. Not 23502: declared
 * columns are checked before, so a column that may not be null was added to the table, and every row is refused.
 */
export function isRowRefusal(error: unknown): boolean {
  if (error instanceof AmbiguousOrder) return true;
  const state = sqlStateOf(error) ?? '';
  return state !== notNullViolation && /^(09...|2[1237]...|4[45]...|54000|P0...|[UZ]....)$/.test(state);
}

/**
 * Like {@link isRowRefusal}, for rows that SQL has made: their nulls are not checked before. A column that is not declared was added to the
 * table; its nulls are no failure of an event.
 */
export function isSqlRowRefusal(projection: Projection, error: unknown): boolean {
  if (isRowRefusal(error)) return true;
  return (
    error instanceof RefoldError &&
    sqlStateOf(error) === notNullViolation &&
    columnNamed(projection, error.fields.column) !== undefined
  );
}

/** Why the database refuses a row, without any of its values. */
export function refusalOf(projection: Projection, error: unknown): RowRefusal {
  if (!(error instanceof RefoldError)) return { reason: reasonOf(error), taken: false };
  const state = sqlStateOf(error) ?? '';
  const constraint = typeof error.fields.constraint === 'string' ? error.fields.constraint : undefined;
  if (state === uniqueViolation) return takenIn(projection, constraint);
  const column = columnNamed(projection, error.fields.column);
  const about = column === undefined ? '' : ` (column '${column}')`;
  // All other messages may quote the value, also one of class 23 that a trigger raised: it names no constraint.
  const isPlain = state === '54000' || (constraint !== undefined && state.startsWith('23'));
  const quotes = projection.hidden.size > 0 && !isPlain;
  const reason = quotes ? `PostgreSQL reports SQLSTATE ${state}.` : sentence(error.message);
  return { reason: `${reason.replace(/\.$/, '')}${about}.`, column, taken: false };
}

function takenIn({ uniqueIndexes, sqlNames, tableName }: Projection, constraint: string | undefined): RowRefusal {
  const on = uniqueIndexes.find(([name]) => constraint === indexName(tableName, String(sqlNames[String(name)])));
  const [column] = on ?? [];
  if (column === undefined)
    return { reason: `its values in the unique index '${constraint}' are already taken by another row.`, taken: true };
  const within = on?.[1] === undefined ? '' : ` within its '${on[1]}'`;
  const wayOut =
    'Declare it with .index() if two rows may have the same value, or make evolve return different values.';
  return { reason: `its '${column}' is already taken by another row${within}. ${wayOut}`, column, taken: true };
}

function columnNamed({ sqlNames }: Projection, found: unknown): string | undefined {
  return Object.keys(sqlNames).find((name) => sqlNames[name] === found);
}

function sentence(message: string): string {
  return message.endsWith('.') ? message : `${message}.`;
}

const uniqueViolation = '23505';
const notNullViolation = '23502';
