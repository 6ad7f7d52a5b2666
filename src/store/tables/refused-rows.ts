import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { RowRefusal } from '../../projections/fold/fold-failures.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { indexName } from './read-table.ts';

/** Rows take unique values in an order that only shows event by event; see `UniqueClaims`. */
export class DoubtfulOrder extends Error {}

/**
 * Whether PostgreSQL refuses the values of a row: the same rows are refused again. Class 21 is a key that a statement's rows hold twice, 22 a
 * value, 23 and 44 a constraint, 54000 a text too long for its index, P0 and the others what triggers raise.
 */
export function isRowRefusal(error: unknown): boolean {
  return (
    error instanceof DoubtfulOrder || /^(09...|2[1237]...|4[45]...|54000|P0...|[UZ]....)$/.test(sqlStateOf(error) ?? '')
  );
}

/** Why the database does not take a row, without any value of it. */
export function refusalOf(projection: Projection, error: unknown): RowRefusal {
  if (!(error instanceof RefoldError)) return { reason: String(error), taken: false };
  const state = sqlStateOf(error) ?? '';
  const constraint = typeof error.fields.constraint === 'string' ? error.fields.constraint : undefined;
  if (state === uniqueViolation) return takenIn(projection, constraint);
  const column = columnNamed(projection, error.fields.column);
  const about = column === undefined ? '' : ` (column '${column}')`;
  // Messages of these classes are worded by PostgreSQL or by a trigger, and may quote the value.
  const quotes = projection.hidden.size > 0 && !/^(23...|54000)$/.test(state);
  const reason = quotes ? `PostgreSQL answers with SQLSTATE ${state}.` : sentence(error.message);
  return { reason: `${reason.replace(/\.$/, '')}${about}.`, column, taken: false };
}

function takenIn({ uniqueIndexes, sqlNames, tableName }: Projection, constraint: string | undefined): RowRefusal {
  const on = uniqueIndexes.find(([name]) => constraint === indexName(tableName, String(sqlNames[String(name)])));
  const [column] = on ?? [];
  if (column === undefined)
    return { reason: `its values in the unique index '${constraint}' are already taken by another row.`, taken: true };
  const within = on?.[1] === undefined ? '' : ` within its '${on[1]}'`;
  const wayOut = 'Declare it with .index() where two rows may have one value, or have evolve tell them apart.';
  return { reason: `its '${column}' is already taken by another row${within}. ${wayOut}`, column, taken: true };
}

function columnNamed({ sqlNames }: Projection, found: unknown): string | undefined {
  return Object.keys(sqlNames).find((name) => sqlNames[name] === found);
}

function sentence(message: string): string {
  return message.endsWith('.') ? message : `${message}.`;
}

const uniqueViolation = '23505';
