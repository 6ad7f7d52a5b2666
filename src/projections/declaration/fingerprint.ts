import { createHash } from 'node:crypto';
import type { Columns } from '../columns/column.ts';

/** What the table's fingerprint is made of. */
export function describeColumns(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    type.kind === 'object'
      ? ['object', describeColumns(type.fields)]
      : type.kind === 'list'
        ? ['list', describeColumns({ item: type.item })]
        : type,
    // What came later only shows where it is used, so that older tables keep their fingerprints.
    [
      flags.nullable,
      flags.primaryKey,
      flags.index,
      flags.unique,
      ...(flags.search ? ['search'] : []),
      ...(flags.within === undefined ? [] : [`within ${flags.within}`]),
    ],
  ]);
}

/** Defaults go with the code: they fill in what `evolve` leaves out. */
export function defaultsOf(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    flags.default,
    type.kind === 'object' ? defaultsOf(type.fields) : type.kind === 'list' ? defaultsOf({ item: type.item }) : [],
  ]);
}

/** Changes with the value, and with nothing else. */
export function fingerprint(value: unknown): string {
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
