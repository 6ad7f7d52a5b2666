import type { Column, Columns } from './column.ts';
import { decimal } from './decimal.ts';
import type { Row, RowCodec } from './row-codec.ts';

/** A row with this key and the least values: defaults, nulls, zeros, empty texts. */
export function blankRow(columns: Columns, codec: RowCodec, key: readonly unknown[]): Row {
  return codec.normalise(blankFields(columns), key);
}

function blankFields(columns: Columns): Record<string, unknown> {
  // The codec fills in keys, defaults and nulls.
  const needed = Object.entries(columns).filter(
    ([, { flags }]) => !flags.primaryKey && !flags.nullable && !flags.hasDefault,
  );
  return Object.fromEntries(needed.map(([name, column]) => [name, blankValue(column)]));
}

function blankValue({ type }: Column): unknown {
  switch (type.kind) {
    case 'text':
      return '';
    case 'integer':
      return 0;
    case 'bigint':
      return 0n;
    case 'decimal':
      return decimal(0n);
    case 'boolean':
      return false;
    case 'uuid':
      return '00000000-0000-0000-0000-000000000000';
    case 'date':
      return '1970-01-01';
    case 'timestamptz':
      return '1970-01-01T00:00:00.000Z';
    case 'bytes':
      return new Uint8Array();
    case 'enum':
      return type.values[0];
    case 'json':
      return {};
    case 'list':
      return [];
    case 'object':
      return blankFields(type.fields);
  }
}
