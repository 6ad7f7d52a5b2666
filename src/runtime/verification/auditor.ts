import type { Logger } from 'pino';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import {
  claimVerification,
  endVerification,
  releaseVerification,
  renewVerification,
} from '../../store/registry/verifications.ts';
import { reasonOf } from '../../thrown.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import type { VersionView } from '../versions/versions.ts';
import { auditVersion } from './audit.ts';
import { withoutHiddenKeys } from './verify.ts';

export interface AuditorOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly versions: VersionView;
  /** Seconds from the end of one audit of a version to the start of the next. */
  readonly everySeconds: number;
  /** Compare about one row in this many. */
  readonly oneOf: number;
  readonly owner: string;
  readonly logger: Logger;
}

const lookMilliseconds = 1000;
// An audit has no deadline, so nearly all time is left to the rest of the process.
const share = 0.05;

/** Audits the declared versions that are ready or active, one at a time. Each audit runs in one process of the application. */
export function createAuditor(options: AuditorOptions): PeriodicTask {
  const { db, projections, versions, owner, logger, everySeconds } = options;

  return startPeriodicTask(
    lookMilliseconds,
    async (signal) => {
      for (const projection of projections) {
        const { name, version } = projection;
        if (signal.aborted || !['ready', 'active'].includes(versions.stateOf(name, version) ?? '')) continue;
        const claim = await claimVerification(db, { name, version, kind: 'audit', owner });
        if (claim) await audit(projection, claim, signal);
      }
    },
    (error) => logger.warn({ err: error }, `an audit failed; trying again. ${reasonOf(error)}`),
  );

  async function audit(
    projection: Projection,
    claim: NonNullable<Awaited<ReturnType<typeof claimVerification>>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { id } = projection;
    const onPage = async () => {
      if (!(await renewVerification(db, claim))) throw new Error(`another process audits ${id} now`);
    };
    try {
      const audited = await auditVersion({ ...options, projection, round: claim.round, share, signal, onPage });
      if (!audited) return;
      const found = withoutHiddenKeys(projection, audited);
      const counts = await endVerification(db, claim, found, everySeconds);
      if (!counts || found.differences === 0) return;
      logger.error(
        { projection: id, position: found.position.toString(), samples: found.samples },
        `${id}: ${found.differences} of ${found.rowsCompared} rows audited are not what the log says. 'refold verify ${id}' compares all, 'refold rebuild ${id}' rebuilds the table.`,
      );
    } catch (error) {
      await releaseVerification(db, claim, signal.aborted ? 0 : everySeconds).catch(() => {});
      throw error;
    }
  }
}
