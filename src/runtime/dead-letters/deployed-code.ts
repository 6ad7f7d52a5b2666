import type { Projection } from '../../projections/projection/projection.ts';
import { readProcessesOfOtherCode } from '../../store/ownership/live-processes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { refused } from '../versions/expect-version.ts';

/**
 * Refuses to fold rows with code that differs from that of the running processes: they go on folding the same rows, and a version may become active
 * because of a fix that they do not have. For what folds outside of the version's owner.
 *
 * @throws RefoldError `INVALID_TRANSITION` that names the processes
 */
export async function expectDeployedCode(
  db: Queryable,
  { id, name, version, codeFingerprint }: Projection,
): Promise<void> {
  const processes = await readProcessesOfOtherCode(db, id, codeFingerprint);
  if (processes.length === 0) return;
  throw refused(
    name,
    version,
    `is folded by ${processes.join(', ')} with other code than the code here, which would fold now. Deploy this code first, or use the deployed code: run the command where it is deployed, or with '--remote URL'.`,
  );
}
