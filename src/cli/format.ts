/** `1234567` → `1,234,567`. */
export function integer(value: number | bigint): string {
  return (typeof value === 'number' ? Math.round(value) : value).toLocaleString('en-US');
}

/** Seconds as a person says them: `42s`, `3m 10s`, `2h 5m`. */
export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}
