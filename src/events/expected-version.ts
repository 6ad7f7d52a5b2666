/** Says why a value is no expected version; undefined if it is one. */
export function expectedVersionProblem(value: unknown): string | undefined {
  if (value === 'any' || value === 'no-stream' || value === 'stream-exists') return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return undefined;
  const found = typeof value === 'number' || typeof value === 'string' ? `'${value}'` : typeof value;
  return `a whole number from 0 on, 'any', 'no-stream' or 'stream-exists' is needed, found ${found}.`;
}
