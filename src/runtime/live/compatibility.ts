import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';

/** Returns the columns that a reader of one version cannot read from another: missing, of another type, or newly nullable. */
export function columnsLost(from: Projection, to: Projection, columns: readonly string[]): string[] {
  const sameKey = from.keyColumns.join() === to.keyColumns.join();
  const read = new Set([...columns, ...from.keyColumns]);
  return [...read].filter((name) => {
    if (!sameKey && from.keyColumns.includes(name)) return true;
    const next = Object.hasOwn(to.columns, name) ? to.columns[name] : undefined;
    const column = from.columns[name];
    return !next || !column || !readsAs(next, column);
  });
}

/** Whether a reader of `column` accepts every value of `next`. */
function readsAs(next: Column, column: Column): boolean {
  if (next.flags.nullable && !column.flags.nullable) return false;
  const [a, b] = [next.type, column.type];
  if (a.kind === 'list' && b.kind === 'list') return readsAs(a.item, b.item);
  if (a.kind === 'enum' && b.kind === 'enum') return a.values.every((value) => b.values.includes(value));
  if (a.kind === 'object' && b.kind === 'object') {
    return Object.entries(b.fields).every(([name, field]) => {
      const other = Object.hasOwn(a.fields, name) ? a.fields[name] : undefined;
      return other !== undefined && readsAs(other, field);
    });
  }
  return a.kind === b.kind;
}
