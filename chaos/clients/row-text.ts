/** Columns of a row as comparable text: the API writes `3.00` where a fold has `3`. */
export function rowText(columns: readonly string[], row: Readonly<Record<string, unknown>> | null | undefined): string {
  return row ? columns.map((column) => `${column} ${canonical(row[column])}`).join(', ') : 'no row';
}

function canonical(value: unknown): string {
  const text = String(value);
  return /^-?\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text;
}
