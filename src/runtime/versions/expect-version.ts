import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { StoredPause } from '../../store/registry/pauses.ts';
import { lockVersion, type RegisteredVersion } from '../../store/registry/registry.ts';
import { isDistributed } from '../../store/statements/placed.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** Who changes the state of a version or a reactor, and why; stored in the audit log. */
export interface TransitionReason {
  readonly actor: string;
  readonly reason: string;
}

export interface ActivateOptions {
  /** Also activates if clients of the version that answers would lose fields, arguments or types. @default false */
  readonly allowBreaking?: boolean;
  /** Versions of the same store that become active in the same transaction, or none of them. */
  readonly along?: readonly { readonly name: string; readonly version: number }[];
}

/** Returns a version of the registry, locked. @throws RefoldError `INVALID_TRANSITION` */
export async function expectVersion(tx: Queryable, name: string, version: number) {
  const found = await lockVersion(tx, name, version);
  if (!found) throw refused(name, version, `is not in the registry; 'refold status' lists the versions.`);
  return found;
}

/**
 * Returns a version of the registry, locked. Its table must be declared here as it was created: a command may run in a working copy that is ahead
 * of what is deployed.
 *
 * @throws RefoldError `PROJECTION_CHANGED`, `INVALID_TRANSITION`
 */
export async function expectDeclaredTable(tx: Queryable, projection: Projection) {
  const found = await expectVersion(tx, projection.name, projection.version);
  checkDeclaredTable(projection, found.tableFingerprint);
  return found;
}

/** @throws RefoldError `PROJECTION_CHANGED` */
export function checkDeclaredTable({ id, name, version, tableFingerprint }: Projection, stored: string): void {
  if (tableFingerprint === stored) return;
  throw new RefoldError(
    'PROJECTION_CHANGED',
    `${id}: its table is declared here differently from the one in the database, which deployed processes still use. Undo the change, or run this where the deployed declarations are. A changed table is declared as ${name}@${version + 1}.`,
    { name, version },
  );
}

/**
 * Refuses what needs all rows of a version at one position, if a Citus cluster distributes them over its workers.
 *
 * @throws RefoldError `INVALID_TRANSITION`
 */
export function refuseDistributed(
  db: Queryable,
  {
    name,
    version,
    partitions,
  }: Pick<RegisteredVersion, 'name' | 'version'> & { readonly partitions: readonly object[] },
  what: string,
): void {
  if (!isDistributed(db, { partitions: partitions.length })) return;
  throw refused(
    name,
    version,
    `is distributed over the workers of a Citus cluster by partition, and ${what} needs all its rows at one position.`,
  );
}

/** Whether a version is paused. One of this store is locked; one of another store can't be. */
export async function expectPause(
  tx: Queryable,
  name: string,
  version: number,
  registered: readonly RegisteredVersion[],
): Promise<StoredPause> {
  if (!tx.elsewhere?.storesOf(name).length) return expectVersion(tx, name, version);
  const { since = null, by = null, reason = null } = registered.find((one) => one.version === version)?.paused ?? {};
  return { pausedAt: since, pausedBy: by, pausedReason: reason };
}

/** Who paused a version, when and why. */
export function pauseText({ pausedAt, pausedBy, pausedReason }: StoredPause): string {
  return `since ${pausedAt} by ${pausedBy} (${pausedReason})`;
}

/** Refuses a step that needs somebody who maintains the version. @throws RefoldError `INVALID_TRANSITION` */
export function refusePaused(name: string, version: number, found: StoredPause): void {
  if (found.pausedAt === null) return;
  throw refused(
    name,
    version,
    `is paused ${pauseText(found)}, so its rows are not current. Run 'refold resume ${name}@${version}' first.`,
  );
}

export function refused(name: string, version: number, problem: string, fields: object = {}): RefoldError {
  return new RefoldError('INVALID_TRANSITION', `${name}@${version} ${problem}`, { name, version, ...fields });
}
