import { invalidDeclaration } from '../../errors.ts';
import type { SnapshotSchedule } from '../projection/projection.ts';
import { refuseUnknownKeys } from '../projection/refuse-unknown.ts';

/** Checks the option `snapshots` and fills in defaults. Null if it is not set. */
export function snapshotSchedule(
  subject: string,
  given: (Partial<SnapshotSchedule> & Pick<SnapshotSchedule, 'everyEvents'>) | undefined,
): SnapshotSchedule | null {
  if (given === undefined) return null;
  // 3: when a bug is found, the last two snapshots may already contain its effects.
  const full = { keep: 3, ...given };
  refuseUnknownKeys(subject, 'snapshots', full, ['everyEvents', 'keep']);
  for (const name of ['everyEvents', 'keep'] as const) {
    if (!Number.isInteger(full[name]) || full[name] < 1)
      throw invalidDeclaration(subject, `snapshots.${name} is a whole number from 1 on, found ${String(full[name])}.`);
  }
  return Object.freeze(full);
}
