import { decimal, isDecimal, isOwnDecimal } from './decimal.ts';
import { invalidRow, wrongType } from './invalid-row.ts';

export function checkInteger(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value > 2_147_483_647 || value < -2_147_483_648)
    throw wrongType(path, 'a whole number of 32 bits (t.bigint holds more)', value);
  return value === 0 ? 0 : value; // PostgreSQL has no -0
}

const largestBigint = 2n ** 63n;

export function checkBigint(value: unknown, path: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value !== 'bigint' || value >= largestBigint || value < -largestBigint)
    throw wrongType(path, 'a bigint of 64 bits', value);
  return value;
}

export function checkDecimal(value: unknown, path: string, precision: number, scale: number) {
  if (typeof value === 'number')
    throw wrongType(
      path,
      "an exact decimal (decimal('12.50'), a string or a bigint; a number has already lost exactness)",
      value,
    );
  if (typeof value !== 'string' && typeof value !== 'bigint' && !isDecimal(value))
    throw wrongType(path, 'a decimal', value);
  const exact = parseDecimal(value);
  if (exact === undefined) throw wrongType(path, "a decimal such as '12.50'", value);
  const digitsAfter = Math.max(0, exact.c.length - 1 - exact.e);
  if (digitsAfter > scale) {
    const holds = `with ${digitsAfter} digits after the point; t.decimal(${precision}, ${scale}) holds ${scale}. Round it in evolve (.round(${scale})) or widen the column.`;
    throw invalidRow(
      `column '${path}' is ${exact.toFixed()}, ${holds}`,
      '',
      `column '${path}' holds a decimal ${holds}`,
    );
  }
  if (exact.c[0] !== 0 && exact.e + 1 > precision - scale) {
    const holds = `too large for t.decimal(${precision}, ${scale}).`;
    throw invalidRow(`column '${path}' is ${exact.toFixed()}, ${holds}`, '', `column '${path}' is ${holds}`);
  }
  return exact;
}

function parseDecimal(value: string | bigint | ReturnType<typeof decimal>) {
  try {
    return canonicalDecimal(value);
  } catch {
    return undefined;
  }
}

export function canonicalDecimal(value: string | bigint | ReturnType<typeof decimal>) {
  const exact = isOwnDecimal(value) ? value : decimal(value);
  return exact.c[0] === 0 && exact.s === -1 ? decimal('0') : exact; // PostgreSQL has no -0
}
