import type { VersionState } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { stoppedPartitions } from '../../store/processors/stopped-processors.ts';
import { lockVersion } from '../../store/registry/registry.ts';
import { recordStep } from '../../store/registry/transitions.ts';
import type { StepReason } from './step.ts';

/**
 * A version can't go on from where it is. One that is on its way (`building`, `ready`) becomes `failed`. One that answers stays `active`: what
 * it answers is whole and gets older, which is better than no answer; its processor is `stopped`. The first partition that stops fails the
 * version, once. Within a transaction.
 *
 * @returns the version's state from then on; undefined where the registry does not know it
 */
export async function failVersion(
  tx: Queryable,
  name: string,
  version: number,
  step: StepReason,
): Promise<VersionState | undefined> {
  const found = await lockVersion(tx, name, version);
  if (found?.state !== 'building' && found?.state !== 'ready') return found?.state;
  await recordStep(tx, { name, version, from: found.state, to: 'failed', heldReason: found.heldReason, ...step });
  return 'failed';
}

/**
 * A version that has failed is taken up again, with fixed code or rows: it becomes `building`, whatever it was before, so that it meets every
 * condition of its activation anew. It stays `failed` while one of its partitions is stopped. Within a transaction.
 *
 * @returns the version's state from then on; undefined where the registry does not know it
 */
export async function resumeVersion(
  tx: Queryable,
  name: string,
  version: number,
  step: StepReason,
): Promise<VersionState | undefined> {
  const found = await lockVersion(tx, name, version);
  if (found?.state !== 'failed') return found?.state;
  if ((await stoppedPartitions(tx, name, version)) > 0) return 'failed';
  await recordStep(tx, { name, version, from: 'failed', to: 'building', heldReason: found.heldReason, ...step });
  return 'building';
}
