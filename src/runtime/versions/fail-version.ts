import type { VersionState } from '../../projections/projection/version-map.ts';
import { stoppedPartitions } from '../../store/processors/stopped-processors.ts';
import { lockVersion } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { TransitionReason } from './expect-version.ts';

/**
 * Records that a version cannot continue. A version that does not answer yet (`building`, `ready`) becomes `failed`. A version that answers stays
 * `active`: its rows are complete up to its checkpoint and grow stale, which is better than no response; its processor is `stopped`. The first
 * partition that stops fails the version, once. Runs within a transaction.
 *
 * @returns the version's state from then on; undefined if the registry does not know it
 */
export async function failVersion(
  tx: Queryable,
  name: string,
  version: number,
  step: TransitionReason,
): Promise<VersionState | undefined> {
  const found = await lockVersion(tx, name, version);
  if (found?.state !== 'building' && found?.state !== 'ready') return found?.state;
  await recordTransition(tx, { name, version, from: found.state, to: 'failed', heldReason: found.heldReason, ...step });
  return 'failed';
}

/**
 * Resumes a failed version, with fixed code or rows. It becomes `building`, whatever it was before, and must meet every condition of its
 * activation again. It stays `failed` while one of its partitions is stopped. Runs within a transaction.
 *
 * @returns the version's state from then on; undefined if the registry does not know it
 */
export async function resumeVersion(
  tx: Queryable,
  name: string,
  version: number,
  step: TransitionReason,
): Promise<VersionState | undefined> {
  const found = await lockVersion(tx, name, version);
  if (found?.state !== 'failed') return found?.state;
  if ((await stoppedPartitions(tx, name, version)) > 0) return 'failed';
  await recordTransition(tx, { name, version, from: 'failed', to: 'building', heldReason: found.heldReason, ...step });
  return 'building';
}
