import type { Column } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/declaration/projection.ts';
import { badInput, canonicalInput } from './canonical-input.ts';
import { opaqueText, readOpaqueText } from './opaque-text.ts';

/** Counts up where ids are made otherwise, so that those that clients keep are told apart. */
const format = 1;

/**
 * What names a row among all rows of the API: the projection's name and the row's key, as base64url of JSON. It names no version, so it
 * stays good when another one answers. Clients take it as it is.
 */
export function globalId({ name, keyColumns, codec }: Projection, row: Row): string {
  const key = keyColumns.map((column) => codec.encodeValue(column, row[column]));
  return opaqueText([format, name, ...key]);
}

/** A global id that has been looked into, not yet held against the projection's columns. */
export interface ParsedGlobalId {
  readonly name: string;
  readonly key: readonly unknown[];
}

/** Nothing where it is none that Refold made. */
export function parseGlobalId(id: string): ParsedGlobalId | undefined {
  const parsed = readOpaqueText(id);
  if (!Array.isArray(parsed)) return undefined;
  const [version, name, ...key] = parsed as readonly unknown[]; // of JSON
  return version === format && typeof name === 'string' && key.length > 0 ? { name, key } : undefined;
}

/** The key that an id names, in its canonical form. @throws RefoldError `BAD_USER_INPUT` */
export function keyOfGlobalId(projection: Projection, id: string, { key }: ParsedGlobalId): RowKey {
  const { keyColumns, columns } = projection;
  if (key.length !== keyColumns.length) throw noGlobalId(id);
  try {
    const canonical = keyColumns.map((name, index) => canonicalInput(columns[name] as Column, name, key[index])); // columns of the projection
    const row = Object.fromEntries(keyColumns.map((name, index) => [name, canonical[index]]));
    // One row has one id, also for clients that compare them: another spelling of a value is none.
    if (globalId(projection, row) === id) return canonical;
  } catch (cause) {
    throw noGlobalId(id, cause);
  }
  throw noGlobalId(id);
}

// What a client sent is repeated in an error no longer than it takes to find it.
const shown = 60;

export function noGlobalId(id: string, cause?: unknown) {
  const text = id.length > shown ? `${id.slice(0, shown)}…` : id;
  return badInput(`'${text}' is no id of a row here. Give one that the field 'id' of a row answered with.`, { cause });
}
