import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';

/** A whole number, and the bounds within which it makes sense. */
export interface NumberRule {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** @throws RefoldError `INVALID_CONFIG` for an option that there is not; names the one that was meant. */
export function refuseUnknown(subject: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidConfig(`unknown option '${name}' of ${subject}.${closest(name, known)}`);
  }
}

/** @throws RefoldError `INVALID_CONFIG` */
export function checkNumbers<const R extends Record<string, NumberRule>>(
  subject: string,
  given: object,
  rules: R,
): { [N in keyof R]: number } {
  const entries = Object.entries(rules).map(([name, rule]) => {
    const value: unknown = (given as Record<string, unknown>)[name] ?? rule.default; // any object is looked at by its options' names
    if (typeof value !== 'number' || !Number.isInteger(value) || value < rule.min || value > rule.max) {
      throw invalidConfig(
        `${subject}.${name} is a whole number from ${rule.min} to ${rule.max}, found ${String(value)}.`,
      );
    }
    return [name, value] as const;
  });
  return Object.fromEntries(entries) as { [N in keyof R]: number }; // one entry per rule
}

/** @throws RefoldError `INVALID_CONFIG` */
export function checkBoolean(subject: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidConfig(`${subject} is true or false, found ${String(value)}.`);
  return value;
}

export function invalidConfig(problem: string): RefoldError<'INVALID_CONFIG'> {
  return new RefoldError('INVALID_CONFIG', problem);
}
