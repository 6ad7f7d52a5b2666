import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { recentSeconds, waitsForMore } from '../../projections/projection/activation-rule.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readLag } from '../../store/processors/lag.ts';
import { type ReadyVersion, readReadyVersions } from '../../store/registry/registry.ts';
import { restateHold } from '../../store/registry/transitions.ts';
import {
  claimVerification,
  endVerification,
  releaseVerification,
  renewVerification,
} from '../../store/registry/verifications.ts';
import { reasonOf } from '../../thrown.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import { type CompareOptions, compareWithPrevious } from '../verification/compare-with-previous.ts';
import { type Verification, verifyVersion, withoutHiddenKeys } from '../verification/verify.ts';
import { heldByDeadLetters } from '../versions/activation-gates.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';
import type { VersionView } from '../versions/versions.ts';

export interface ActivatorOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly versions: VersionView;
  readonly lifecycle: Lifecycle;
  /** Identifies this process in the audit log, for example `host:4711`. */
  readonly owner: string;
  readonly logger: Logger;
}

const pollMilliseconds = 1000;
const usageCheckMilliseconds = 60_000;
// A comparison that was impossible, for example because two versions were never at the same position, is retried after this time.
const tryAgainSeconds = 5;

/**
 * Activates ready versions as soon as the conditions of their declarations are met: time, freshness, rows that match the log and the previous
 * version. Every process that maintains read tables runs it; one process at a time makes a comparison.
 */
export function createActivator(options: ActivatorOptions): PeriodicTask {
  const { db, projections, versions, logger } = options;
  const logged = new Set<string>();
  const usageCheckedAt = new Map<string, number>();
  const task = startPeriodicTask(pollMilliseconds, poll, (error) =>
    logger.warn({ err: error }, `could not check for versions to activate; trying again: ${reasonOf(error)}`),
  );
  const unsubscribe = versions.onChange(() => task.soon());

  async function poll(signal: AbortSignal): Promise<void> {
    const waiting = projections.filter(
      ({ name, version, activation }) => activation.by === 'auto' && versions.stateOf(name, version) === 'ready',
    );
    if (waiting.length === 0) return;
    const ready = await readReadyVersions(db);
    for (const projection of waiting) {
      const { id, name, version, activation } = projection;
      const found = ready.find((one) => one.name === name && one.version === version);
      if (!found || signal.aborted) continue;
      logHeld(id, found);
      const lifted =
        (found.heldBy === 'breaking' && isLifted(projection)) ||
        (found.heldBy === 'dead-letters' && (await deadLettersAllow(projection)));
      if ((found.heldReason === null || lifted) && found.seconds >= activation.minReadySeconds)
        await activateIfMet(projection, signal);
    }
  }

  /** Limits how often usage is checked: it changes slowly, and the check builds two schemas. */
  function isLifted({ id, activation }: Projection): boolean {
    if (typeof activation.breaking === 'string') return activation.breaking === 'allow';
    if (performance.now() - (usageCheckedAt.get(id) ?? Number.NEGATIVE_INFINITY) < usageCheckMilliseconds) return false;
    usageCheckedAt.set(id, performance.now());
    return true; // becomeActive checks the usage
  }

  /** Checks again, because the dead letters may have been retried or discarded meanwhile. */
  async function deadLettersAllow(projection: Projection): Promise<boolean> {
    const reason = await heldByDeadLetters(db, projection);
    if (reason !== null) await restateHold(db, projection, 'dead-letters', reason);
    return reason === null;
  }

  function logHeld(id: string, { heldReason, heldBy }: ReadyVersion): void {
    const text = `${id} is held at ready: ${heldReason}`;
    if (heldReason === null || heldBy === 'operator' || logged.has(text)) return;
    logged.add(text);
    logger.warn({ projection: id }, text);
  }

  async function activateIfMet(projection: Projection, signal: AbortSignal): Promise<void> {
    if (!(await isFresh(db, projection))) return;
    const found = waitsForMore(projection.activation) ? await compareRows(options, projection, signal) : '';
    if (found === null || !(await isFresh(db, projection))) return;
    await options.lifecycle.becomeActive(projection, { actor: options.owner, reason: `caught up${found}` });
    await versions.refresh();
  }

  return {
    soon: task.soon,
    stop() {
      unsubscribe();
      return task.stop();
    },
  };
}

async function isFresh(db: Database, { name, version, activation }: Projection): Promise<boolean> {
  const { maxLag, maxLagSeconds } = activation;
  const lags = (await readLag(db)).filter((lag) => lag.name === name && lag.version === version);
  return lags.every(
    ({ positions, seconds }) =>
      (positions <= maxLag || seconds <= recentSeconds) && (maxLagSeconds === null || seconds <= maxLagSeconds),
  );
}

/** Returns what was compared, for the audit log; null if the version must wait longer, or is held now. */
async function compareRows(
  options: ActivatorOptions,
  projection: Projection,
  signal: AbortSignal,
): Promise<string | null> {
  const { db, log, readSchema, projections, lifecycle, owner, logger } = options;
  const { id, name, version, activation } = projection;
  const { verifyOneOf: oneOf, comparedColumns } = activation;
  if (oneOf === null && comparedColumns === null) return '';
  const claim = await claimVerification(db, { name, version, kind: 'activation', owner });
  if (!claim) return null;
  const hold = (reason: string) => lifecycle.hold(projection, 'verification', { actor: owner, reason });
  try {
    const said: string[] = [];
    if (oneOf !== null) {
      const onPage = async () => {
        signal.throwIfAborted();
        if (!(await renewVerification(db, claim))) throw new Error('another process verifies it now');
      };
      const found = withoutHiddenKeys(
        projection,
        await verifyVersion({ db, log, readSchema, projection, oneOf, onPage }),
      );
      if (!(await endVerification(db, claim, found, 0))) return null;
      if (found.differences > 0) {
        await hold(differsFromLog(id, found));
        return null;
      }
      said.push(`${found.rowsCompared} rows are what the log says`);
    } else {
      await releaseVerification(db, claim);
    }
    if (comparedColumns !== null) {
      const compared = await compareWithPrevious({ db, readSchema, projections, projection } satisfies CompareOptions);
      if (compared.problem !== null) {
        await hold(compared.problem);
        return null;
      }
      said.push(compared.said);
    }
    return `, ${said.join(', ')}`;
  } catch (error) {
    await releaseVerification(db, claim, tryAgainSeconds).catch(() => {});
    if (!(error instanceof RefoldError) || signal.aborted) throw error;
    logger.warn({ projection: id, err: error }, `${id} could not be compared; trying again. ${error.message}`);
    return null;
  }
}

function differsFromLog(id: string, { position, differences, rowsCompared, samples }: Verification): string {
  const shown = samples
    .slice(0, 3)
    .map(({ key, kind, columns }) => `${key} ${kind}${columns.length > 0 ? ` in ${columns.join(', ')}` : ''}`);
  return `${differences} of ${rowsCompared} rows compared at position ${position} are not what the log says (${shown.join('; ')}). 'refold verify ${id}' shows them, 'refold rebuild ${id}' rebuilds them.`;
}
