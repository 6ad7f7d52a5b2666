import { createHash } from 'node:crypto';
import type { CompiledQuery } from 'kysely';
import type { Queryable } from './statement.ts';

/** Runs what the builder compiled, prepared by name where the same text was run before. */
export function runPrepared<Row extends object>(target: Queryable, query: CompiledQuery<Row>): Promise<Row[]> {
  const name = preparedName(query.sql);
  return target.query<Row>({ text: query.sql, values: query.parameters, ...(name === undefined ? {} : { name }) });
}

// Each prepared statement costs every connection some kilobytes for as long as it lives, and clients may send filters of any
// shape: so only what is asked again gets a name, and no more than this many do.
const mostNames = 300;
const mostCandidates = 2000;

const names = new Map<string, string>();
const candidates = new Set<string>();

/** The name to prepare a statement under; none where that would not pay. */
export function preparedName(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= mostNames) return known;
  if (!candidates.delete(text)) {
    if (candidates.size >= mostCandidates) candidates.clear();
    candidates.add(text);
    return undefined;
  }
  const name = `refold_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
  names.set(text, name);
  return name;
}
