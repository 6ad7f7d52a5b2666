import { type Column, isContainer } from '../../projections/columns/column.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection } from '../../projections/projection/projection.ts';

// About the size of one write to a socket. A whole batch as one text would be in memory three times.
const pieceLength = 65_536;

/**
 * Rows in the text format of COPY, with the columns in order of declaration: one line per row, in pieces.
 *
 * @param last the value of a further column. @default there is none
 */
export function* copiedRows(
  { codec, columns }: Projection,
  rows: readonly Row[],
  last?: (row: Row) => number,
): Generator<string> {
  const names = Object.keys(columns);
  const parts = names.map((name, index) => ({
    name,
    encode: codec.encoderOf(name),
    isJson: isContainer(columns[name] as Column), // names of columns
    end: index === names.length - 1 && !last ? '\n' : '\t',
  }));
  let piece = '';
  for (const row of rows) {
    for (const { name, encode, isJson, end } of parts) {
      const value = encode(row[name]);
      piece += (value === null ? '\\N' : isJson ? escaped(JSON.stringify(value)) : copiedValue(value)) + end;
    }
    if (last) piece += `${last(row)}\n`;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function copiedValue(value: unknown): string {
  return typeof value === 'string' ? escaped(value) : String(value);
}

function escaped(text: string): string {
  return special.test(text) ? text.replace(everySpecial, (char) => escapes[char] ?? char) : text;
}

// The characters that end a value, a line or an escape. All others need no escape.
const special = /[\\\t\n\r]/;
const everySpecial = /[\\\t\n\r]/g;
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
