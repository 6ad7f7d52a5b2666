import { createHash } from 'node:crypto';
import type { Columns } from '../columns/column.ts';

/** The input of the table fingerprint. A whole table is described by its columns alone. */
export function describeTable(columns: Columns, startAfter: bigint = 0n): unknown {
  const described = describeColumns(columns);
  return startAfter === 0n ? described : { columns: described, startAfter };
}

function describeColumns(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    type.kind === 'object'
      ? ['object', describeColumns(type.fields)]
      : type.kind === 'list'
        ? ['list', describeColumns({ item: type.item })]
        : type,
    // Newer flags are included only if set. Older tables keep their fingerprints.
    [
      flags.nullable,
      flags.primaryKey,
      flags.index,
      flags.unique,
      ...(flags.search ? ['search'] : []),
      ...(flags.long ? ['long'] : []),
      ...(flags.within === undefined ? [] : [`within ${flags.within}`]),
    ],
  ]);
}

/** Defaults belong to the code fingerprint: they fill in what `evolve` leaves out. */
export function defaultsOf(columns: Columns): unknown {
  return Object.entries(columns).map(([name, { type, flags }]) => [
    name,
    flags.default,
    type.kind === 'object' ? defaultsOf(type.fields) : type.kind === 'list' ? defaultsOf({ item: type.item }) : [],
  ]);
}

/** A fingerprint that depends on nothing but the value. */
export function fingerprint(value: unknown): string {
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
