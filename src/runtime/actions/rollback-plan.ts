import type { Config } from '../../config/define-config.ts';
import type { RegisteredVersion } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { refused } from '../versions/expect-version.ts';
import { activeVersions } from './version-basis.ts';

/** Which version a rollback takes out of service, and which one answers then. Undefined where there is none. */
export interface RollbackPlan {
  readonly from: RegisteredVersion | undefined;
  readonly to: RegisteredVersion | undefined;
  /** Whether no process keeps `to` current. */
  readonly isLeft: boolean;
}

/** @throws RefoldError `INVALID_TRANSITION` if this application does not declare the version that would answer */
export async function planRollback(
  db: Queryable,
  { projections }: Pick<Config, 'projections'>,
  name: string,
): Promise<RollbackPlan> {
  const [to, from] = (await activeVersions(db, name)).slice(-2);
  const isDeclared = projections.some((one) => one.name === name && one.version === to?.version);
  if (from && to && !isDeclared)
    throw refused(
      name,
      to.version,
      'would answer, but this application does not declare it. Declare it again, deploy that, and let it catch up.',
    );
  // For a live inline version, appends do the work of a processor.
  return { from, to, isLeft: to !== undefined && to.status !== 'running' && to.inline !== 'live' };
}
