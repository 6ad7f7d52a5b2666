import { CommandRejected, InvalidInput, invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';

/** Which errors a rule matches: a class, the `code` of an error (`'ECONNREFUSED'`), or a predicate. */
export type ErrorClass = (abstract new (...args: never[]) => Error) | string | ((error: unknown) => boolean);

/** When to retry after an error, with exponential backoff: `first · factorⁿ` up to `maxPause`, minus a random share of `jitter`. */
export interface RetryRule {
  /** @default every error */
  readonly on?: ErrorClass | readonly ErrorClass[];
  /** The maximum number of retries; 0 for none, `Infinity` for no limit. */
  readonly times: number;
  /** The pause before the first retry, in milliseconds. @default 200 */
  readonly first?: number;
  /** @default 2 */
  readonly factor?: number;
  /** The longest pause, in milliseconds. @default 30000 */
  readonly maxPause?: number;
  /** The random share of a pause, 0 to 1. It keeps events that failed together from being retried together. @default 0.5 */
  readonly jitter?: number;
}

export const defaultRetries: readonly RetryRule[] = [{ on: [CommandRejected, InvalidInput], times: 0 }, { times: 5 }];

// Comes before the declared rules: without the database, no checkpoint and no dead letter could be written either.
const outage: RetryRule = { on: ['DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN'], times: Number.POSITIVE_INFINITY };

// The same code would fail in the same way, and repeat what the handler does beside its steps.
const mistake: RetryRule = { on: ['STEP_CHANGED', 'INVALID_STEP', 'REACTION_LOOP', 'HISTORY_CHANGED'], times: 0 };

/**
 * Returns the pause before the next attempt, in milliseconds; undefined if there is none.
 *
 * @param attempts the number of attempts so far, 1 or more
 * @param random from 0 to 1
 */
export function pauseBeforeRetry(
  rules: readonly RetryRule[],
  error: unknown,
  attempts: number,
  random: number,
): number | undefined {
  const rule = [outage, mistake, ...rules].find(
    ({ on }) => on === undefined || [on].flat().some((one) => fits(one, error)),
  );
  if (!rule || attempts > rule.times) return undefined;
  const { first = 200, factor = 2, maxPause = 30_000, jitter = 0.5 } = rule;
  return Math.min(maxPause, first * factor ** (attempts - 1)) * (1 - jitter * random);
}

// As many as the default rules declare.
const leastRetriesAfterLoss = 5;

/**
 * How often an event is handled again after an attempt during which its process ended. The event need not be the cause, so rules for all errors
 * only allow more; a rule for `PROCESS_ENDED` may allow fewer.
 */
export function retriesAfterLoss(rules: readonly RetryRule[], error: unknown): number {
  const rule = rules.find(({ on }) => on === undefined || [on].flat().some((one) => fits(one, error)));
  const named = rules.find(({ on }) => [on].flat().includes('PROCESS_ENDED'));
  return named ? named.times : Math.max(rule?.times ?? 0, leastRetriesAfterLoss);
}

/** @throws RefoldError `INVALID_DECLARATION` */
export function checkRetries(subject: string, rules: readonly RetryRule[]): readonly RetryRule[] {
  if (!Array.isArray(rules)) throw invalidDeclaration(subject, `'retries' is a list of rules, such as [{ times: 5 }].`);
  const known = ['on', 'times', 'first', 'factor', 'maxPause', 'jitter'];
  for (const rule of rules) {
    for (const name of Object.keys(rule)) {
      if (!known.includes(name))
        throw invalidDeclaration(subject, `unknown option '${name}' of a retry rule.${closest(name, known)}`);
    }
    const { times, first = 0, factor = 1, maxPause = 0, jitter = 0 } = rule;
    if (!(times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times >= 0)))
      throw invalidDeclaration(
        subject,
        `a retry rule's 'times' is a whole number from 0 on, or Infinity, found ${times}.`,
      );
    if (!(first >= 0 && maxPause >= 0 && factor >= 1))
      throw invalidDeclaration(
        subject,
        `a retry rule's 'first' and 'maxPause' are milliseconds, and 'factor' is 1 or more.`,
      );
    if (!(jitter >= 0 && jitter <= 1))
      throw invalidDeclaration(subject, `a retry rule's 'jitter' is a share from 0 to 1, found ${jitter}.`);
  }
  return Object.freeze(rules.map((rule) => Object.freeze({ ...rule })));
}

function fits(on: ErrorClass, error: unknown): boolean {
  if (typeof on === 'string') return codeOf(error) === on;
  if (isErrorClass(on)) return error instanceof on;
  return on(error);
}

function codeOf(error: unknown): unknown {
  try {
    return error instanceof Error && 'code' in error ? error.code : undefined;
  } catch {
    return undefined; // an error whose members can't be read
  }
}

function isErrorClass(on: Exclude<ErrorClass, string>): on is abstract new (...args: never[]) => Error {
  return on === Error || on.prototype instanceof Error;
}
