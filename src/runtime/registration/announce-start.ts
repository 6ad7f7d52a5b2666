import { RefoldError } from '../../errors.ts';
import { readProcessesOfOtherOwnership } from '../../store/ownership/live-processes.ts';
import { type Announcement, announceProcess } from '../../store/ownership/processes.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { silentSeconds } from '../../store/server/running-processes.ts';
import { requireReadSchema } from '../../store/server/server-check.ts';

/** A process that owns nothing yet. */
export type StartingProcess = Omit<Announcement, 'declares' | 'owns' | 'keeps'>;

/**
 * Announces a process that starts, unless its read tables are elsewhere, or others maintain the same with another kind of ownership: neither
 * kind excludes the other, and they would take the work from each other again and again. Call it under the lock of the registry: of two that
 * start at once, one is refused.
 *
 * @throws RefoldError `OPTION_DIFFERS`
 */
export async function announceStart(
  tx: Transaction,
  readSchema: string,
  described: StartingProcess | undefined,
): Promise<void> {
  await requireReadSchema(tx, readSchema);
  if (!described?.ownership) return;
  const { ownership, maintains = [] } = described;
  const [other, ...more] = await readProcessesOfOtherOwnership(tx, ownership, maintains);
  if (other) {
    const names = [other, ...more].map(({ name }) => name);
    throw new RefoldError(
      'OPTION_DIFFERS',
      `runtime.ownership is '${ownership}', and ${names.join(', ')} ${names.length === 1 ? 'runs' : 'run'} with '${other.ownership}': they would take the work from each other. Set '${other.ownership}' here. To change it, stop all processes that maintain the same, then start them with '${ownership}'; a killed one counts as running for ${silentSeconds} seconds.`,
      { option: 'runtime.ownership', found: ownership, expected: other.ownership, processes: names },
    );
  }
  await announceProcess(tx, { ...described, declares: [], owns: [], keeps: [] });
}
