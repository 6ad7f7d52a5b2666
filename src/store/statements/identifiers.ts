/** An identifier as SQL text. Builder code and `sql` templates use `sql.id`, `sql.ref` and `sql.table` instead. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** A table or view with its schema, as SQL text. */
export function qualified(schema: string, name: string): string {
  return `${quoted(schema)}.${quoted(name)}`;
}
