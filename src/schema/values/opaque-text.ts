/** What clients hand back as they got it, such as cursors and ids: a JSON value as base64url. */
export function opaqueText(value: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** What {@link opaqueText} was made of; undefined for any other text. */
export function readOpaqueText(text: string): unknown {
  const bytes = Buffer.from(text, 'base64url');
  // Buffer skips what is no base64url; the text is taken as it was given or not at all.
  if (bytes.toString('base64url') !== text) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
