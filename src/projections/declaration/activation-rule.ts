import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { refuseUnknown } from './refuse-unknown.ts';

/** When a version that has caught up becomes active. An operator's `refold activate` asks for none of it but `breaking`. */
export interface ActivationOptions {
  /** `auto`: as soon as all of the others hold. `manual`: on the operator's word (`refold activate`). @default 'auto' */
  readonly by?: 'auto' | 'manual';
  /** How many positions of the log the version may be behind to count as ready. @default 100 */
  readonly maxLag?: number;
  /** How old the first event may be that the version has yet to fold when it becomes active, in seconds. @default any age */
  readonly maxLagSeconds?: number;
  /** How long the version stays at ready before it becomes active, in seconds: time to look at it. @default 0 */
  readonly minReadySeconds?: number;
  /**
   * Whether the log is folded again and compared with the version's rows before it becomes active: all of them, or about one of so many.
   * A difference holds it at ready. A full comparison holds all rows in memory.
   * @default false
   */
  readonly verify?: boolean | { readonly oneOf: number };
  /**
   * Whether its rows are compared with those of the version that answers until then, over all columns that both have or over these. A
   * difference holds it at ready. For a version that only adds to the one before.
   * @default not compared
   */
  readonly compareWith?: 'previous' | { readonly columns: readonly string[] };
  /**
   * Whether live queries are executed on it, too, and compared with what clients were answered (`refold shadow`), until enough of them agree.
   * Without traffic it stays at ready. A version that is the first of its projection waits for none.
   * @default not compared
   */
  readonly shadow?: ShadowGateOptions;
  /**
   * What becomes of a version whose GraphQL types would break what clients can ask for now, such as by a removed field: `hold` keeps it at
   * ready until `refold activate --breaking`, `allow` lets it become active. `{ unusedDays }` lets it where it is known that no client has asked
   * for any of what breaks in so many days: all gateways have recorded what clients ask for (`gateway.fieldUsage`) all that time.
   * @default 'hold'
   */
  readonly breaking?: BreakingRule;
  /**
   * How many dead letters and skipped events a version may have that the version which answers does not have: `none-new`, `any`, or at most so
   * many. More of them hold it at ready, and a rebuild of a version that answers does not take over. Where no version answers, nothing is
   * compared.
   * @default 'none-new'
   */
  readonly deadLetters?: 'none-new' | 'any' | number;
}

/** What live queries have to say before a version becomes active. */
export interface ShadowGateOptions {
  /** How many have to be compared within the time below. Those that could not be, by the moment, don't count. */
  readonly queries: number;
  /** The share of them, from 0 to 1, that may be answered differently, or not at all. @default 0 */
  readonly maxDifferent?: number;
  /** The time that counts, up to now, in seconds, by the minute; 7 days at most. @default 86400 */
  readonly withinSeconds?: number;
  /** About one of so many queries is compared; more on a busy gateway. @default 10 */
  readonly oneOf?: number;
}

/** What becomes of a version that would break clients. */
export type BreakingRule = 'hold' | 'allow' | { readonly unusedDays: number };

/** {@link ActivationOptions}, checked and complete. */
export interface ActivationRule {
  readonly by: 'auto' | 'manual';
  readonly maxLag: number;
  readonly maxLagSeconds: number | null;
  readonly minReadySeconds: number;
  /** Compare about one row of so many with the log; null compares none. */
  readonly verifyOneOf: number | null;
  /** Compare these columns with the previous version's, or `all` that both have; null compares none. */
  readonly comparedColumns: readonly string[] | 'all' | null;
  /** Null: live queries are not asked. */
  readonly shadow: Required<ShadowGateOptions> | null;
  readonly breaking: BreakingRule;
  /** Dead letters and skipped events that the version which answers does not have. Infinity: any number. */
  readonly mostNewDeadLetters: number;
}

const known = [
  'by',
  'maxLag',
  'maxLagSeconds',
  'minReadySeconds',
  'verify',
  'compareWith',
  'shadow',
  'breaking',
  'deadLetters',
];

/** The option `activation`, checked and complete. @throws RefoldError `INVALID_DECLARATION` */
export function activationRule(
  subject: string,
  columns: readonly string[],
  option: 'auto' | 'manual' | ActivationOptions = 'auto',
): ActivationRule {
  const given = typeof option === 'string' ? { by: option } : option;
  refuseUnknown(subject, 'activation', given, known);
  // 100: at the head of a busy log a reader is always a few events behind; a first page of answers that old is fresh enough.
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
    shadow: given.shadow === undefined ? null : shadowGate(subject, given.shadow),
    breaking,
    mostNewDeadLetters: mostNewDeadLetters(subject, given.deadLetters ?? 'none-new'),
  };
  if (by === 'manual' && waitsForMore(rule))
    throw invalidDeclaration(
      subject,
      `activation by 'manual' waits for nothing but the operator; leave out maxLagSeconds, minReadySeconds, verify, compareWith and shadow, or choose by: 'auto'.`,
    );
  return Object.freeze(rule);
}

/** Whether a version that is ready has still to wait for something else than its GraphQL types. */
export function waitsForMore(rule: ActivationRule): boolean {
  const { maxLagSeconds, minReadySeconds, verifyOneOf, comparedColumns, shadow } = rule;
  return (
    maxLagSeconds !== null || minReadySeconds > 0 || verifyOneOf !== null || comparedColumns !== null || shadow !== null
  );
}

// What was compared by the minute is kept for as long.
const longestSeconds = 7 * 86_400;

function shadowGate(subject: string, given: ShadowGateOptions): Required<ShadowGateOptions> {
  if (typeof given !== 'object' || given === null)
    throw invalidDeclaration(subject, `activation.shadow is such as { queries: 1000 }, found ${String(given)}.`);
  refuseUnknown(subject, 'activation.shadow', given, ['queries', 'maxDifferent', 'withinSeconds', 'oneOf']);
  const { queries, maxDifferent = 0, withinSeconds = 86_400, oneOf = 10 } = given;
  for (const [part, value, most] of [
    ['queries', queries, 1_000_000],
    ['oneOf', oneOf, 1_000_000],
    ['withinSeconds', withinSeconds, longestSeconds],
  ] as const) {
    if (!Number.isInteger(value) || value < 1 || value > most)
      throw invalidDeclaration(
        subject,
        `activation.shadow.${part} is a whole number from 1 to ${most}, found ${String(value)}.`,
      );
  }
  if (typeof maxDifferent !== 'number' || !(maxDifferent >= 0 && maxDifferent <= 1))
    throw invalidDeclaration(
      subject,
      `activation.shadow.maxDifferent is a share from 0 to 1, found ${String(maxDifferent)}.`,
    );
  return Object.freeze({ queries, maxDifferent, withinSeconds, oneOf });
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
  refuseUnknown(subject, 'activation.breaking', breaking, ['unusedDays']);
  const { unusedDays } = breaking as { unusedDays?: unknown }; // any object is looked at by its options' names
  if (typeof unusedDays !== 'number' || !Number.isInteger(unusedDays) || unusedDays < 1)
    throw invalidDeclaration(
      subject,
      `activation.breaking.unusedDays is a whole number of days from 1 on, found ${String(unusedDays)}.`,
    );
}

function mostNewDeadLetters(subject: string, given: unknown): number {
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
        `activation.compareWith names '${name}', which is no column.${closest(name, columns)}`,
      );
  }
  return Object.freeze([...given.columns]);
}
