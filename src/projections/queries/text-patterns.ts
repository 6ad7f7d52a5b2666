/** A text of which every character stands for itself in a pattern of LIKE. */
export function literalPattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

/** Of the texts that it is any part of. */
export function partPattern(text: string): string {
  return `%${literalPattern(text)}%`;
}

/** The first text, in the order of code points, after all that start with the prefix; none where nothing is after them. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix.toWellFormed());
  while (characters.at(-1) === '\u{10ffff}') characters.pop();
  const last = characters.pop()?.codePointAt(0);
  if (last === undefined) return undefined;
  // Surrogates are no characters: the next after U+D7FF is U+E000.
  return characters.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
}

/** What a pattern of LIKE is made of: characters, and what stands for any one (`_`) or any number of them (`%`). */
type Part = { readonly character: string } | '_' | '%';

/** The parts of a pattern; undefined where it ends with the backslash that should escape something, which PostgreSQL refuses. */
export function patternParts(pattern: string): readonly Part[] | undefined {
  const parts: Part[] = [];
  const characters = Array.from(pattern);
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] as string; // index < length
    if (character === '%' || character === '_') parts.push(character);
    else if (character !== '\\') parts.push({ character });
    else {
      const escaped = characters[++index];
      if (escaped === undefined) return undefined;
      parts.push({ character: escaped });
    }
  }
  return parts;
}

/** Whether a text is of a pattern, as PostgreSQL's LIKE says. */
export function isLike(text: string, pattern: string): boolean {
  const parts = patternParts(pattern) ?? [];
  const characters = Array.from(text);
  let [at, part] = [0, 0];
  // Where to go on if the last '%' has to take one character more. The last is enough: what an earlier one could still take, it can, too.
  let [retryAt, retryPart] = [0, -1];
  while (at < characters.length) {
    const wanted = parts[part];
    if (wanted === '%') [retryAt, retryPart] = [at, ++part];
    else if (wanted === '_' || (wanted !== undefined && wanted.character === characters[at])) {
      at++;
      part++;
    } else if (retryPart >= 0) [at, part] = [++retryAt, retryPart];
    else return false;
  }
  return parts.slice(part).every((left) => left === '%');
}

/**
 * A text for comparisons that take upper and lower case for the same. Upper case: a letter's does not depend on those around it, so that a part
 * of a text is a part of it in this form, too. The tables do the same with the rules of ICU (`upper(… collate "und-x-icu")`).
 */
export function withoutCase(text: string): string {
  return text.toUpperCase();
}
