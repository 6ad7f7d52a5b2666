import type { DatabaseOptions } from './database-options.ts';
import { checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';

export interface RuntimeOptions {
  /** Events read at once. Larger pages catch up faster and hold more memory. @default 5000 */
  readonly pageSize?: number;
  /**
   * The back-pressure: pages that wait for a busy processor before its reading of the log pauses. More of them even out a processor that is
   * slow at times, and hold more memory.
   * @default 4
   */
  readonly bufferedPages?: number;
  readonly polling?: PollingOptions;
  /**
   * How processes agree on who maintains what. `'advisory'`: a lock in a session; a killed process's work is free within a second. `'lease'`: a
   * row that is renewed; needs no session, so it is the one for a pooler in transaction mode. A host that vanishes or hangs frees its work
   * after `leaseSeconds` with either. All processes of an application must have the same.
   * @default 'advisory'
   */
  readonly ownership?: 'advisory' | 'lease';
  /**
   * For how long nothing may be heard of an owner, in seconds; then another process takes its work over. An owner is heard of every third of
   * that. Shorter: faster fail-over when a host or a network falls silent, but a process that stalls for so long loses its work to another.
   * All processes of an application must have the same.
   * @default 30
   */
  readonly leaseSeconds?: number;
  /**
   * Days for which an idempotency key of a command is remembered: a client that sends the command again within them gets the first answer. Keys of
   * imports and of `log.append` are kept with the log.
   * @default 7
   */
  readonly idempotencyDays?: number;
  /**
   * Days for which the outcome of a reactor's step is remembered at least: as long as the reactor has yet to handle its event, or keeps it as a dead
   * letter, it stays. A reactor can't be rewound to where outcomes are forgotten, since it would run those steps again.
   * @default 90
   */
  readonly stepDays?: number;
  /**
   * How long a stop waits for the handlers of reactors in work, in milliseconds; then their signals abort. What they had not finished is
   * handled again by whoever owns the reactor next.
   * @default 10000
   */
  readonly stopTimeout?: number;
  /**
   * Whether the processes that maintain read tables compare them with the log again and again: one version after the other, a part of its rows
   * each time, slowly. A difference is logged as an error, shown by `refold status` and counted in `/metrics`.
   * @default false
   */
  readonly audit?: false | AuditOptions;
}

/**
 * How read tables are audited. Each audit of a version folds the whole log for the sample, in about a twentieth of one core. A version with
 * `evolveSql` is compared as a whole instead: one evaluation of its SQL in the database, as fast as it can.
 */
export interface AuditOptions {
  /** Seconds from the end of one audit of a version to the start of its next. @default 3600 */
  readonly everySeconds?: number;
  /** Compares about one row of so many; as many audits compare them all. The sample is held in memory. @default 100 */
  readonly oneOf?: number;
}

/** How long consumers wait between looks at the log where no notification comes: from `min`, growing by `step` up to `max`, each ± `jitter`. */
export interface PollingOptions {
  /** Milliseconds. @default 100 */
  readonly min?: number;
  /** Milliseconds. @default 2000 */
  readonly max?: number;
  /** Milliseconds added after each look that found nothing. @default 100 */
  readonly step?: number;
  /** Share of the interval, 0 to 1, drawn at random so that processes do not look in step. @default 0.2 */
  readonly jitter?: number;
}

/** Checked and complete. */
export type CheckedRuntime = Omit<Required<RuntimeOptions>, 'polling' | 'audit'> & {
  readonly polling: Required<PollingOptions>;
  readonly audit: false | Required<AuditOptions>;
};

type NumberRules = Record<string, NumberRule>;

const numbers = {
  pageSize: { default: 5000, min: 1, max: 100_000 },
  bufferedPages: { default: 4, min: 1, max: 1000 },
  leaseSeconds: { default: 30, min: 1, max: 3600 },
  idempotencyDays: { default: 7, min: 1, max: 36_500 },
  stepDays: { default: 90, min: 1, max: 36_500 },
  stopTimeout: { default: 10_000, min: 0, max: 3_600_000 },
} as const satisfies NumberRules;

const pollingNumbers = {
  min: { default: 100, min: 1, max: 3_600_000 },
  max: { default: 2000, min: 1, max: 3_600_000 },
  step: { default: 100, min: 0, max: 3_600_000 },
} as const satisfies NumberRules;

const auditNumbers = {
  everySeconds: { default: 3600, min: 1, max: 2_592_000 },
  oneOf: { default: 100, min: 1, max: 1_000_000 },
} as const satisfies NumberRules;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkRuntime(
  runtime: RuntimeOptions,
  { notifications = true }: Pick<DatabaseOptions, 'notifications'>,
): CheckedRuntime {
  refuseUnknown('runtime', runtime, ['polling', 'ownership', 'audit', ...Object.keys(numbers)]);
  const { ownership = 'advisory', polling = {}, audit = false } = runtime;
  if (ownership !== 'advisory' && ownership !== 'lease')
    throw invalidConfig(`runtime.ownership is 'advisory' or 'lease', found '${String(ownership)}'.`);
  if (!notifications && ownership === 'advisory')
    throw invalidConfig(
      "database.notifications is false, as behind a pooler in transaction mode, where advisory locks don't hold. Set runtime.ownership to 'lease'.",
    );
  return Object.freeze({
    polling: checkPolling(polling),
    ownership,
    audit: checkAudit(audit),
    ...checkNumbers('runtime', runtime, numbers),
  });
}

function checkPolling(polling: PollingOptions): Required<PollingOptions> {
  refuseUnknown('runtime.polling', polling, ['jitter', ...Object.keys(pollingNumbers)]);
  const jitter = polling.jitter ?? 0.2;
  if (!(jitter >= 0 && jitter <= 1))
    throw invalidConfig(`runtime.polling.jitter is a share from 0 to 1, found ${jitter}.`);
  const checked = { jitter, ...checkNumbers('runtime.polling', polling, pollingNumbers) };
  if (checked.min > checked.max)
    throw invalidConfig(`runtime.polling.min (${checked.min}) is above max (${checked.max}).`);
  return Object.freeze(checked);
}

function checkAudit(audit: false | AuditOptions): CheckedRuntime['audit'] {
  if (audit === false) return false;
  if (typeof audit !== 'object' || audit === null)
    throw invalidConfig(`runtime.audit is false or { everySeconds, oneOf }, found ${String(audit)}.`);
  refuseUnknown('runtime.audit', audit, Object.keys(auditNumbers));
  return Object.freeze(checkNumbers('runtime.audit', audit, auditNumbers));
}
