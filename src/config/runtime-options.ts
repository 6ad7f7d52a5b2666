import type { DatabaseOptions } from './database-options.ts';
import { checkNumbers, checkShare, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';
import type { OptionRule } from './option-rules.ts';

/** How processes agree on who maintains what. */
export type OwnershipKind = 'advisory' | 'lease' | 'memory';

export interface RuntimeOptions {
  /** The number of events read at once, as long as they have less than about 8 MiB. Larger pages catch up faster and use more memory. @default 5000 */
  readonly pageSize?: number;
  /**
   * Back-pressure: the number of pages that may wait for a busy processor before its reads of the log pause. More pages help a processor
   * that is slow at times, and use more memory.
   * @default 4
   */
  readonly bufferedPages?: number;
  readonly polling?: PollingOptions;
  /**
   * How processes agree on who maintains what. `'advisory'` uses a lock in a session; the work of a killed process is free within a second.
   * `'lease'` uses a row that is renewed. It needs no session, so use it with a pooler in transaction mode. With either, the work of a host
   * that vanishes or hangs is free after `leaseSeconds`. `'memory'` asks no server. Use it if one process only maintains the read tables,
   * for example in tests: two such processes would take the work from each other again and again, although no row would be wrong. All
   * processes of an application must use the same setting: one with another that maintains the same is refused with `OPTION_DIFFERS`.
   * @default 'advisory'
   */
  readonly ownership?: OwnershipKind;
  /**
   * How long an owner may be silent, in seconds, before another process takes over its work. Owners send a heartbeat several times in this
   * time, see `leaseRenewalFactor`. A shorter time means faster fail-over if a host or a network fails, but a process that is suspended for
   * this long loses its work to another. A process whose code keeps the event loop busy keeps its work for up to five minutes. All processes of an application must use the same setting.
   * @default 30
   */
  readonly leaseSeconds?: number;
  /**
   * The share of `leaseSeconds` after which an owner renews its leases, or sends its heartbeat: 0.01 to 0.9. A smaller share survives more
   * renewals that fail, and costs more statements. A renewal has failed if the next one is due before its response is there.
   * @default 1/3: one renewal may fail
   */
  readonly leaseRenewalFactor?: number;
  /**
   * How long the idempotency key of a command is kept, in days. A client that repeats the command within this time gets the first response.
   * Keys of imports and of `log.append` are kept with the log.
   * @default 7
   */
  readonly idempotencyDays?: number;
  /**
   * How long the outcome of a reactor's step is kept at least, in days. It is kept longer while the reactor has yet to handle the event or
   * keeps it as a dead letter. A reactor cannot be rewound to a position whose outcomes are deleted, because it would run those steps
   * again.
   * @default 90
   */
  readonly stepDays?: number;
  /**
   * How long a stop waits for running handlers of reactors, in milliseconds. Then their signals abort. The next owner of the reactor
   * handles again what they did not finish.
   * @default 10000
   */
  readonly stopTimeout?: number;
  /**
   * The port where a worker answers `/health`, `/health/live`, `/health/ready` and `/metrics`, on `gateway.host`. 0 picks a free one. Gateways
   * answer them on their own port.
   * @default none
   */
  readonly healthPort?: number;
  /**
   * Whether the processes that maintain read tables also audit them: they continuously compare the tables with the log, one version after
   * the other, a sample of the rows each time, slowly. A difference is logged as an error, shown by `refold status` and counted in
   * `/metrics`.
   * @default false
   */
  readonly audit?: false | AuditOptions;
}

/**
 * Options of the audit. Each audit of a version folds the whole log for the sample; it uses about a twentieth of one core. A version with
 * `evolveSql` is compared completely instead: its SQL is evaluated once in the database, at full speed.
 */
export interface AuditOptions {
  /** Seconds between the end of one audit of a version and the start of the next. @default 3600 */
  readonly everySeconds?: number;
  /** Each audit compares about one row in this many; that many audits compare all rows. The sample is held in memory. @default 100 */
  readonly oneOf?: number;
}

/**
 * How long consumers wait between polls of the log if no notification arrives: `min` at first, then growing by `step` up to `max`, each
 * shortened by a random share of up to `jitter`.
 */
export interface PollingOptions {
  /** The shortest wait between two polls of the log, in milliseconds. @default 100 */
  readonly min?: number;
  /** The longest one. Milliseconds. @default 2000 */
  readonly max?: number;
  /** Milliseconds added after each poll that found nothing. @default 100 */
  readonly step?: number;
  /** The largest share by which a wait is shortened at random, 0 to 1. It prevents processes from polling in lockstep. @default 0.2 */
  readonly jitter?: number;
}

/** The options, checked and complete. */
export type CheckedRuntime = Omit<Required<RuntimeOptions>, 'polling' | 'audit' | 'healthPort'> & {
  readonly healthPort: number | undefined;
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

const port = { default: 0, min: 0, max: 65_535 } as const satisfies NumberRule;

const pollingNumbers = {
  min: { default: 100, min: 1, max: 3_600_000 },
  max: { default: 2000, min: 1, max: 3_600_000 },
  step: { default: 100, min: 0, max: 3_600_000 },
} as const satisfies NumberRules;

const auditNumbers = {
  everySeconds: { default: 3600, min: 1, max: 2_592_000 },
  oneOf: { default: 100, min: 1, max: 1_000_000 },
} as const satisfies NumberRules;

const ownershipKinds = ['advisory', 'lease', 'memory'] as const satisfies readonly OwnershipKind[];

const pollingRules = {
  ...pollingNumbers,
  jitter: { kind: 'share', min: 0, max: 1 },
} as const satisfies Record<keyof PollingOptions, OptionRule>;

export const runtimeRules = {
  polling: { kind: 'group', of: pollingRules },
  ownership: { kind: 'choice', of: ownershipKinds },
  leaseRenewalFactor: { kind: 'share', min: 0.01, max: 0.9 },
  healthPort: port,
  audit: { kind: 'group', of: auditNumbers, switch: true },
  ...numbers,
} as const satisfies Record<keyof RuntimeOptions, OptionRule>;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkRuntime(
  runtime: RuntimeOptions,
  { notifications = true }: Pick<DatabaseOptions, 'notifications'>,
): CheckedRuntime {
  refuseUnknown('runtime', runtime, Object.keys(runtimeRules));
  const { ownership = 'advisory', leaseRenewalFactor = 1 / 3, healthPort, polling = {}, audit = false } = runtime;
  if (!ownershipKinds.includes(ownership))
    throw invalidConfig(`runtime.ownership is 'advisory', 'lease' or 'memory', found '${String(ownership)}'.`);
  if (!notifications && ownership === 'advisory')
    throw invalidConfig(
      "database.notifications is false, as behind a pooler in transaction mode, where advisory locks don't hold. Set runtime.ownership to 'lease'.",
    );
  return Object.freeze({
    polling: checkPolling(polling),
    ownership,
    leaseRenewalFactor: checkShare('runtime.leaseRenewalFactor', leaseRenewalFactor, runtimeRules.leaseRenewalFactor),
    healthPort:
      healthPort === undefined ? undefined : checkNumbers('runtime', { healthPort }, { healthPort: port }).healthPort,
    audit: checkAudit(audit),
    ...checkNumbers('runtime', runtime, numbers),
  });
}

function checkPolling(polling: PollingOptions): Required<PollingOptions> {
  refuseUnknown('runtime.polling', polling, Object.keys(pollingRules));
  const jitter = checkShare('runtime.polling.jitter', polling.jitter ?? 0.2, pollingRules.jitter);
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
