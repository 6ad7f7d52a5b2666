import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { refuseUnknownKeys } from './refuse-unknown.ts';

/** The conditions under which a version that has caught up becomes active. `refold activate` skips all of them except `breaking`. */
export interface ActivationOptions {
  /** `auto`: as soon as all other conditions hold. `manual`: when an operator runs `refold activate`. @default 'auto' */
  readonly by?: 'auto' | 'manual';
  /** How many positions the version may be behind what the log was two seconds ago, and still count as ready. @default 100 */
  readonly maxLag?: number;
  /** The maximum age, in seconds, of the oldest event that the version has not yet folded. @default no limit */
  readonly maxLagSeconds?: number;
  /** How long the version stays `ready` before it becomes active, in seconds. Use the time to inspect it. @default 0 */
  readonly minReadySeconds?: number;
  /**
   * Whether Refold folds the log again and compares the result with the version's rows first: all rows, or about one in `oneOf`. A
   * difference keeps the version at `ready`. A full comparison holds all rows in memory.
   * @default false
   */
  readonly verify?: boolean | { readonly oneOf: number };
  /**
   * Whether Refold compares the rows with those of the active version, over all shared columns or over the named ones. A difference keeps
   * the version at `ready`. Use it for a version that only adds to the previous one.
   * @default not compared
   */
  readonly compareWith?: 'previous' | { readonly columns: readonly string[] };
  /**
   * What happens if the version's GraphQL types would break client queries, for example by removing a field. `hold` keeps the version at
   * `ready` until `refold activate --breaking`. `allow` lets it become active. `{ unusedDays }` lets it become active if no client has used
   * any breaking part for that many days. This needs usage records of all gateways (`gateway.fieldUsage`) for the whole time.
   * @default 'hold'
   */
  readonly breaking?: BreakingRule;
  /**
   * How many dead letters and skipped events the version may have that the active version does not have: `none-new`, `any`, or a maximum.
   * More of them keep the version at `ready`, and a rebuild does not replace the active version's table. If no version is active, nothing
   * is compared.
   * @default 'none-new'
   */
  readonly deadLetters?: 'none-new' | 'any' | number;
}

/** What happens with a version that would break clients. */
export type BreakingRule = 'hold' | 'allow' | { readonly unusedDays: number };

/** {@link ActivationOptions}, checked and complete. */
export interface ActivationRule {
  readonly by: 'auto' | 'manual';
  readonly maxLag: number;
  readonly maxLagSeconds: number | null;
  readonly minReadySeconds: number;
  /** Compare about one row in this many with the log; null compares none. */
  readonly verifyOneOf: number | null;
  /** Compare these columns with the previous version's, or `all` shared columns; null compares none. */
  readonly comparedColumns: readonly string[] | 'all' | null;
  readonly breaking: BreakingRule;
  /** The maximum of dead letters and skipped events that the active version does not have. Infinity: no limit. */
  readonly maxNewDeadLetters: number;
}

/** What the log got in these seconds does not count as lag: otherwise a version would never become ready at the head of a busy log. */
export const recentSeconds = 2;

const known = ['by', 'maxLag', 'maxLagSeconds', 'minReadySeconds', 'verify', 'compareWith', 'breaking', 'deadLetters'];

/** Checks the option `activation` and fills in defaults. @throws RefoldError `INVALID_DECLARATION` */
export function activationRule(
  subject: string,
  columns: readonly string[],
  option: 'auto' | 'manual' | ActivationOptions = 'auto',
): ActivationRule {
  const given = typeof option === 'string' ? { by: option } : option;
  refuseUnknownKeys(subject, 'activation', given, known);
  // 100: a reader is always a few events behind. A first page that old is fresh enough.
  const { by = 'auto', maxLag = 100, maxLagSeconds = null, minReadySeconds = 0, breaking = 'hold' } = given;
  if (!['auto', 'manual'].includes(by))
    throw invalidDeclaration(subject, `activation is 'auto' or 'manual', found '${by}'.`);
  if (!Number.isInteger(maxLag) || maxLag < 0)
    throw invalidDeclaration(subject, `activation.maxLag is a number of positions, 0 or more, found ${maxLag}.`);
  if (maxLagSeconds !== null) checkSeconds(subject, 'maxLagSeconds', maxLagSeconds);
  checkSeconds(subject, 'minReadySeconds', minReadySeconds);
  checkBreaking(subject, breaking);
  const rule = {
    by,
    maxLag,
    maxLagSeconds,
    minReadySeconds,
    verifyOneOf: verifyOneOf(subject, given.verify ?? false),
    comparedColumns: comparedColumns(subject, columns, given.compareWith),
    breaking,
    maxNewDeadLetters: maxNewDeadLetters(subject, given.deadLetters ?? 'none-new'),
  };
  if (by === 'manual' && waitsForMore(rule))
    throw invalidDeclaration(
      subject,
      `activation by 'manual' waits only for the operator; leave out maxLagSeconds, minReadySeconds, verify and compareWith, or choose by: 'auto'.`,
    );
  return Object.freeze(rule);
}

/** Whether a version that is ready has conditions left besides its GraphQL types. */
export function waitsForMore(rule: ActivationRule): boolean {
  const { maxLagSeconds, minReadySeconds, verifyOneOf, comparedColumns } = rule;
  return maxLagSeconds !== null || minReadySeconds > 0 || verifyOneOf !== null || comparedColumns !== null;
}

function checkSeconds(subject: string, part: string, seconds: number): void {
  if (!Number.isFinite(seconds) || seconds < 0)
    throw invalidDeclaration(subject, `activation.${part} is a number of seconds, 0 or more, found ${seconds}.`);
}

function checkBreaking(subject: string, breaking: unknown): void {
  if (breaking === 'hold' || breaking === 'allow') return;
  if (typeof breaking !== 'object' || breaking === null)
    throw invalidDeclaration(
      subject,
      `activation.breaking is 'hold', 'allow' or { unusedDays: 30 }, found '${String(breaking)}'.`,
    );
  refuseUnknownKeys(subject, 'activation.breaking', breaking, ['unusedDays']);
  const { unusedDays } = breaking as { unusedDays?: unknown }; // an object of unknown shape; its option names are checked
  if (typeof unusedDays !== 'number' || !Number.isInteger(unusedDays) || unusedDays < 1)
    throw invalidDeclaration(
      subject,
      `activation.breaking.unusedDays is a whole number of days from 1 on, found ${String(unusedDays)}.`,
    );
}

function maxNewDeadLetters(subject: string, given: unknown): number {
  if (given === 'none-new') return 0;
  if (given === 'any') return Number.POSITIVE_INFINITY;
  if (typeof given === 'number' && Number.isInteger(given) && given >= 0) return given;
  throw invalidDeclaration(
    subject,
    `activation.deadLetters is 'none-new', 'any' or a whole number from 0 on, found '${String(given)}'.`,
  );
}

function verifyOneOf(subject: string, given: boolean | { readonly oneOf: number }): number | null {
  if (typeof given === 'boolean') return given ? 1 : null;
  const { oneOf } = given;
  if (!Number.isInteger(oneOf) || oneOf < 1)
    throw invalidDeclaration(subject, `activation.verify.oneOf is a whole number from 1 on, found ${oneOf}.`);
  return oneOf;
}

function comparedColumns(
  subject: string,
  columns: readonly string[],
  given: ActivationOptions['compareWith'],
): readonly string[] | 'all' | null {
  if (given === undefined) return null;
  if (given === 'previous') return 'all';
  if (!Array.isArray(given?.columns) || given.columns.length === 0)
    throw invalidDeclaration(subject, `activation.compareWith is 'previous' or { columns: ['…'] }.`);
  for (const name of given.columns) {
    if (!columns.includes(name))
      throw invalidDeclaration(
        subject,
        `activation.compareWith names '${name}', which is not a column.${closest(name, columns)}`,
      );
  }
  return Object.freeze([...given.columns]);
}
