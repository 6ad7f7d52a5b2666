import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';

/** The default and the bounds of a whole number. */
export interface NumberRule {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** Another environment variable of the option, beside the one that follows from its name. */
  readonly also?: string;
}

/** The bounds of a number that need not be whole. */
export interface ShareRule {
  readonly kind: 'share';
  readonly min: number;
  readonly max: number;
}

/** Refuses options that do not exist, and suggests the closest name. @throws RefoldError `INVALID_CONFIG` */
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
    const value: unknown = (given as Record<string, unknown>)[name] ?? rule.default; // any object can be read by property names
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
export function checkShare(subject: string, value: number, { min, max }: ShareRule): number {
  if (!(value >= min && value <= max))
    throw invalidConfig(`${subject} is a share from ${min} to ${max}, found ${value}.`);
  return value;
}

/** @throws RefoldError `INVALID_CONFIG` */
export function checkBoolean(subject: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidConfig(`${subject} is true or false, found ${String(value)}.`);
  return value;
}

export function invalidConfig(problem: string): RefoldError<'INVALID_CONFIG'> {
  return new RefoldError('INVALID_CONFIG', problem);
}
