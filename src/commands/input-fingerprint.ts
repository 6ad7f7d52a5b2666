import { createHash } from 'node:crypto';

/** Hashes an input. Inputs with equal members have equal hashes, in whatever order the members come. */
export function inputFingerprint(input: unknown): string {
  const text = JSON.stringify(input, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (value instanceof Map || value instanceof Set) return [...value];
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return createHash('sha256')
    .update(text ?? '')
    .digest('base64url');
}
