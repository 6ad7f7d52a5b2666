import { invalidDeclaration } from '../../errors.ts';
import type { SnapshotSchedule } from './projection.ts';
import { refuseUnknown } from './refuse-unknown.ts';

/** The option `snapshots`, checked and complete; null where there is none. */
export function snapshotSchedule(
  subject: string,
  given: (Partial<SnapshotSchedule> & Pick<SnapshotSchedule, 'everyEvents'>) | undefined,
): SnapshotSchedule | null {
  if (given === undefined) return null;
  // 3: the last one may have been taken since a bug went out, and the one before that, too.
  const full = { keep: 3, ...given };
  refuseUnknown(subject, 'snapshots', full, ['everyEvents', 'keep']);
  for (const name of ['everyEvents', 'keep'] as const) {
    if (!Number.isInteger(full[name]) || full[name] < 1)
      throw invalidDeclaration(subject, `snapshots.${name} is a whole number from 1 on, found ${String(full[name])}.`);
  }
  return Object.freeze(full);
}
