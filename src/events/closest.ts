/**
 * `" Did you mean 'x'?"` with the most similar known name. If none is similar, lists up to 12 known names; else returns an empty string.
 */
export function closest(name: string, known: readonly string[]): string {
  const best = similar(name, known);
  if (best !== undefined) return ` Did you mean '${best}'?`;
  return known.length > 0 && known.length <= 12
    ? ` It knows ${known.map((candidate) => `'${candidate}'`).join(', ')}.`
    : '';
}

/** The most similar known name; undefined if none is similar. */
export function similar(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => ({
    candidate,
    distance: editDistance(name.toLowerCase(), candidate.toLowerCase()),
  }));
  const best = ranked.sort((a, b) => a.distance - b.distance)[0];
  return best && best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

// Levenshtein distance with two rows.
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
