/** `1234567` → `1,234,567`. */
export function integer(value: number | bigint): string {
  return (typeof value === 'number' ? Math.round(value) : value).toLocaleString('en-US');
}

/** Formats seconds: `42s`, `3m 10s`, `2h 5m`. */
export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}

/** Formats a size on disk: `1536` → `1.5 kB`. */
export function bytes(value: bigint): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(units.length - 1, value === 0n ? 0 : Math.floor((value.toString(2).length - 1) / 10));
  const shown = Number((value * 10n) / 2n ** BigInt(step * 10)) / 10;
  return `${shown.toLocaleString('en-US')} ${units[step]}`;
}

/** JSON output for programs. Positions are strings, because they may exceed the precision of a double. */
export function json(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part), 2);
}
