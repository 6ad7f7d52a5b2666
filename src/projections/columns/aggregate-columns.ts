import type { Column } from './column.ts';

export type TimeBucket = 'hour' | 'day' | 'month';

/** Columns that have a sum and an average. */
export function isNumeric({ type: { kind } }: Column): boolean {
  return kind === 'integer' || kind === 'bigint' || kind === 'decimal';
}

/** Columns that have a minimum and a maximum. */
export function isOrdered(column: Column): boolean {
  const { kind } = column.type;
  return isNumeric(column) || kind === 'text' || kind === 'date' || kind === 'timestamptz';
}

/** The time units that a column's rows can be grouped by. */
export function timeBuckets({ type: { kind } }: Column): readonly TimeBucket[] {
  if (kind === 'timestamptz') return ['hour', 'day', 'month'];
  return kind === 'date' ? ['month'] : []; // a date column groups by day without a bucket
}

// Four more digits: the average of amounts of money is exact to a hundredth of a cent.
const moreDigits = 4;

/** Digits after the point of a column's average. The last digit is rounded half away from zero. */
export function averageScale({ type }: Column): number {
  return (type.kind === 'decimal' ? type.scale : 0) + moreDigits;
}
