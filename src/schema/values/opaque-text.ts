/** Encodes opaque values that clients send back unchanged, such as cursors and ids: JSON as base64url. */
export function opaqueText(value: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Decodes an {@link opaqueText}; returns undefined for any other text. */
export function readOpaqueText(text: string): unknown {
  const bytes = Buffer.from(text, 'base64url');
  // Buffer skips invalid characters; only an exact encoding is accepted.
  if (bytes.toString('base64url') !== text) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
