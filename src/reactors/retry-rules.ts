import { CommandRejected, InvalidInput, invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';

/** Which errors a rule is for: a class, the `code` of an error (`'ECONNREFUSED'`), or a test. */
export type ErrorClass = (abstract new (...args: never[]) => Error) | string | ((error: unknown) => boolean);

/** When to try again after an error, with exponential back-off: `first · factorⁿ` up to `most`, less a random share of `jitter`. */
export interface RetryRule {
  /** @default every error */
  readonly on?: ErrorClass | readonly ErrorClass[];
  /** Further tries at most; 0 for none, `Infinity` for no end. */
  readonly times: number;
  /** The pause before the second try, in milliseconds. @default 200 */
  readonly first?: number;
  /** @default 2 */
  readonly factor?: number;
  /** The longest pause, in milliseconds. @default 30000 */
  readonly most?: number;
  /** The share of a pause, 0 to 1, that is left to chance, so that what failed together is not tried again together. @default 0.5 */
  readonly jitter?: number;
}

export const defaultRetries: readonly RetryRule[] = [{ on: [CommandRejected, InvalidInput], times: 0 }, { times: 5 }];

// Ahead of what is declared: without the database no checkpoint and no dead letter could be written either.
const outage: RetryRule = { on: ['DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN'], times: Number.POSITIVE_INFINITY };

/**
 * The pause before the next try, in milliseconds; undefined where there is none.
 *
 * @param attempts how often it was tried, 1 or more
 * @param random from 0 to 1
 */
export function pauseBeforeRetry(
  rules: readonly RetryRule[],
  error: unknown,
  attempts: number,
  random: number,
): number | undefined {
  const rule = [outage, ...rules].find(({ on }) => on === undefined || [on].flat().some((one) => fits(one, error)));
  if (!rule || attempts > rule.times) return undefined;
  const { first = 200, factor = 2, most = 30_000, jitter = 0.5 } = rule;
  return Math.min(most, first * factor ** (attempts - 1)) * (1 - jitter * random);
}

/** @throws RefoldError `INVALID_DECLARATION` */
export function checkRetries(subject: string, rules: readonly RetryRule[]): readonly RetryRule[] {
  if (!Array.isArray(rules)) throw invalidDeclaration(subject, `'retries' is a list of rules, such as [{ times: 5 }].`);
  const known = ['on', 'times', 'first', 'factor', 'most', 'jitter'];
  for (const rule of rules) {
    for (const name of Object.keys(rule)) {
      if (!known.includes(name))
        throw invalidDeclaration(subject, `unknown option '${name}' of a retry rule.${closest(name, known)}`);
    }
    const { times, first = 0, factor = 1, most = 0, jitter = 0 } = rule;
    if (!(times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times >= 0)))
      throw invalidDeclaration(
        subject,
        `a retry rule's 'times' is a whole number from 0 on, or Infinity, found ${times}.`,
      );
    if (!(first >= 0 && most >= 0 && factor >= 1))
      throw invalidDeclaration(
        subject,
        `a retry rule's 'first' and 'most' are milliseconds, and 'factor' is 1 or more.`,
      );
    if (!(jitter >= 0 && jitter <= 1))
      throw invalidDeclaration(subject, `a retry rule's 'jitter' is a share from 0 to 1, found ${jitter}.`);
  }
  return Object.freeze(rules.map((rule) => Object.freeze({ ...rule })));
}

function fits(on: ErrorClass, error: unknown): boolean {
  if (typeof on === 'string') return error instanceof Error && 'code' in error && error.code === on;
  if (isErrorClass(on)) return error instanceof on;
  return on(error);
}

function isErrorClass(on: Exclude<ErrorClass, string>): on is abstract new (...args: never[]) => Error {
  return on === Error || on.prototype instanceof Error;
}
