/** Escapes a text for a LIKE pattern: every character matches only itself. */
export function literalPattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

/** A LIKE pattern that matches texts that contain this text. */
export function partPattern(text: string): string {
  return `%${literalPattern(text)}%`;
}

/** The first text, in code point order, after all texts that start with the prefix. Undefined if there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix.toWellFormed());
  while (characters.at(-1) === '\u{10ffff}') characters.pop();
  const last = characters.pop()?.codePointAt(0);
  if (last === undefined) return undefined;
  // Surrogates are not characters: U+E000 follows U+D7FF.
  return characters.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
}

/** A part of a LIKE pattern: a character, any single character (`_`), or any number of characters (`%`). */
type Part = { readonly character: string } | '_' | '%';

/** The parts of a pattern. Undefined if it ends with an unfinished escape (`\`), which PostgreSQL refuses. */
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

/** Whether a text matches a pattern, like PostgreSQL's LIKE. */
export function isLike(text: string, pattern: string): boolean {
  const parts = patternParts(pattern) ?? [];
  const characters = Array.from(text);
  let [at, part] = [0, 0];
  // Where to continue if the last '%' has to match one more character. Only the last '%' matters: it can match whatever an earlier one
  // could.
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
 * Converts a text to upper case for case-insensitive comparison. Upper case does not depend on the letters around, so a part of a text
 * stays a part in this form. The tables use ICU's rules for the same (`upper(… collate "und-x-icu")`).
 */
export function withoutCase(text: string): string {
  return text.toUpperCase();
}
