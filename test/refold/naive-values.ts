import type { Column } from '../../src/projections/columns/column.ts';
import { type Decimal, decimal } from '../../src/projections/columns/decimal.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import type { RowOrder } from '../../src/projections/queries/row-query.ts';

export type Input = Readonly<Record<string, unknown>>;

export function columnOf(projection: Projection, name: string): Column {
  return projection.columns[name] as Column; // declared
}

/** A row in comparable form, from the values of an event or an argument. */
export function rowOf({ columns }: Projection, given: Input): Row {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, canonical(column, given[name])]));
}

export function canonical({ type }: Column, given: unknown): unknown {
  if (given === null || given === undefined) return null;
  switch (type.kind) {
    case 'decimal':
      return decimal(given as string);
    case 'bigint':
      return BigInt(given as string);
    case 'timestamptz':
      return microseconds(String(given));
    case 'bytes':
      return `\\x${Buffer.from(String(given), 'base64').toString('hex')}`;
    case 'object':
      return Object.fromEntries(
        Object.entries(type.fields).map(([name, field]) => [name, canonical(field, (given as Input)[name])]),
      );
    case 'list':
      return (given as unknown[]).map((item) => canonical(type.item, item));
    default:
      return given;
  }
}

/** Three digits after the point, or six if needed; all times here are in UTC. */
function microseconds(text: string): string {
  const [, seconds, fraction = ''] = /^([^.Z]*)\.?(\d*)Z$/.exec(text) ?? [];
  return `${seconds}.${fraction.padEnd(6, '0').replace(/000$/, '')}Z`;
}

/** As in a JSON response. */
export function told({ type }: Column, value: unknown): unknown {
  if (value === null) return null;
  switch (type.kind) {
    case 'decimal':
      return (value as Decimal).toFixed(type.scale);
    case 'bigint':
      return String(value);
    case 'bytes':
      return Buffer.from(String(value).slice(2), 'hex').toString('base64');
    case 'object':
      return Object.fromEntries(
        Object.entries(type.fields).map(([name, field]) => [name, told(field, (value as Input)[name])]),
      );
    case 'list':
      return (value as unknown[]).map((item) => told(type.item, item));
    default:
      return value;
  }
}

export function ordersOf(orderBy: unknown): readonly RowOrder[] {
  return ((orderBy ?? []) as readonly Input[]).flatMap((entry) =>
    Object.entries(entry).map(([column, word]): RowOrder => {
      const [, direction, nulls] = /^(ASC|DESC)(?:_NULLS_(FIRST|LAST))?$/.exec(String(word)) ?? [];
      const descending = direction === 'DESC';
      return {
        column,
        direction: descending ? 'desc' : 'asc',
        nulls: nulls ? (nulls === 'FIRST' ? 'first' : 'last') : descending ? 'first' : 'last',
      };
    }),
  );
}
