import { type InputIssue, InvalidInput } from '../../errors.ts';
import { badInput } from './canonical-input.ts';

// Deeper than a user's form, and far from a stack overflow: checks of values are recursive.
const deepest = 64;

/** @throws RefoldError `BAD_USER_INPUT` for variables with too deeply nested lists and objects */
export function checkDepth(variables: Readonly<Record<string, unknown>> | null | undefined): void {
  for (const name in variables) {
    if (isDeeper(variables[name], deepest))
      throw badInput(`The variable '${name}' is nested more than ${deepest} levels deep.`);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const part of Array.isArray(value) ? value : Object.values(value)) if (isDeeper(part, levels - 1)) return true;
  return false;
}

/**
 * Refuses input that no event can store: PostgreSQL's JSON does not allow NUL or unpaired surrogates, and JSON has no infinity (1e400).
 * Without this check, the client would get an internal error from the log.
 *
 * @throws InvalidInput with the path of each problem
 */
export function checkStorable(command: string, input: unknown): void {
  const issues = [...unstorable(input, [], deepest)];
  if (issues.length > 0) throw new InvalidInput('BAD_USER_INPUT', `The input of '${command}'`, issues);
}

function* unstorable(value: unknown, path: InputIssue['path'], levels: number): Generator<InputIssue> {
  if (typeof value === 'string') {
    if (!isStorable(value)) yield { path, message: 'has the character U+0000, or half of a surrogate pair.' };
    return;
  }
  // JSON would store such a number as null.
  if (value === Infinity || value === -Infinity) return yield { path, message: 'is beyond what a number can hold.' };
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) return yield { path: path.slice(0, 1), message: `is nested more than ${deepest} levels deep.` };
  if (Array.isArray(value)) {
    for (const [index, part] of value.entries()) yield* unstorable(part, [...path, index], levels - 1);
    return;
  }
  for (const [name, part] of Object.entries(value)) {
    if (isStorable(name)) yield* unstorable(part, [...path, name], levels - 1);
    else yield { path, message: 'has a member whose name has the character U+0000, or half of a surrogate pair.' };
  }
}

export function isStorable(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed();
}
