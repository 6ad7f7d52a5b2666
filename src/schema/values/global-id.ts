import type { Column } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { badInput, canonicalInput } from './canonical-input.ts';
import { opaqueText, readOpaqueText } from './opaque-text.ts';

/** Incremented when the format of ids changes; distinguishes ids that clients stored. */
const format = 1;

/**
 * Identifies a row among all rows of the API: the projection's name and the row's key, as base64url of JSON. It contains no version, so it
 * stays valid when another version becomes active. Clients treat it as opaque.
 */
export function globalId({ name, keyColumns, codec }: Projection, row: Row): string {
  const key = keyColumns.map((column) => codec.encodeValue(column, row[column]));
  return opaqueText([format, name, ...key]);
}

/** A decoded global id; its key is not yet checked against the projection's columns. */
export interface ParsedGlobalId {
  readonly name: string;
  readonly key: readonly unknown[];
}

/** Returns undefined if Refold did not create the id. */
export function parseGlobalId(id: string): ParsedGlobalId | undefined {
  const parsed = readOpaqueText(id);
  if (!Array.isArray(parsed)) return undefined;
  const [version, name, ...key] = parsed as readonly unknown[]; // from JSON
  return version === format && typeof name === 'string' && key.length > 0 ? { name, key } : undefined;
}

/** Returns the key of an id in canonical form. @throws RefoldError `BAD_USER_INPUT` */
export function keyOfGlobalId(projection: Projection, id: string, { key }: ParsedGlobalId): RowKey {
  const { keyColumns, columns } = projection;
  if (key.length !== keyColumns.length) throw noGlobalId(id);
  try {
    const canonical = keyColumns.map((name, index) => canonicalInput(columns[name] as Column, name, key[index])); // columns of the projection
    const row = Object.fromEntries(keyColumns.map((name, index) => [name, canonical[index]]));
    // A row has exactly one id, because clients compare ids; other spellings of a value are refused.
    if (globalId(projection, row) === id) return canonical;
  } catch (cause) {
    throw noGlobalId(id, cause);
  }
  throw noGlobalId(id);
}

// An error repeats only as much of the client's input as is needed to recognize it.
const shown = 60;

export function noGlobalId(id: string, cause?: unknown) {
  const text = id.length > shown ? `${id.slice(0, shown)}…` : id;
  return badInput(`'${text}' is not the id of a row. Use the value of a row's field 'id'.`, { cause });
}
