import { createHash } from 'node:crypto';
import type { CompiledQuery } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Queryable, Statement } from './statement.ts';

/** Runs a statement that the builder compiled. Prepares it by name if the same text was run before. */
export function runPrepared<Row extends object>(
  target: Queryable,
  query: CompiledQuery<Row>,
  options: Pick<Statement, 'exactJson'> = {},
): Promise<Row[]> {
  const name = preparedName(query.sql);
  const named = name === undefined ? {} : { name };
  return target.query<Row>({ text: query.sql, values: query.parameters, ...named, ...options });
}

// Clients may send filters of any shape, so only repeated statements get a name. Connections deallocate unused statements
// (`limitPrepared`); these limits bound the memory of the process. Candidates are stored as hashes, because a text may be long.
const maxNames = 300;
const maxCandidates = 2000;

const names = new LRUCache<string, string>({ max: maxNames });
const candidates = new LRUCache<string, true>({ max: maxCandidates });

/** The name to prepare a statement under. Undefined on its first use. */
export function preparedName(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined) return known;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 24);
  if (!candidates.delete(hash)) {
    candidates.set(hash, true);
    return undefined;
  }
  const name = `refold_${hash}`;
  names.set(text, name);
  return name;
}

const serverNames = new LRUCache<string, { readonly text: string; readonly name: string }>({ max: 2000 });

/**
 * The name under which a server knows a statement. PostgreSQL truncates names to 63 bytes, and the names of projections are in them; a table may
 * also be created again with other columns. So a hash distinguishes all names and texts. The beginning is for readers of
 * `pg_prepared_statements`.
 */
export function serverName(name: string, text: string): string {
  const known = serverNames.get(name);
  if (known?.text === text) return known.name;
  const hash = createHash('sha256').update(`${name}\n${text}`).digest('hex').slice(0, 24);
  const made = `${name.slice(0, 38)} ${hash}`;
  serverNames.set(name, { text, name: made });
  return made;
}
