import { storedText } from '../../thrown.ts';
import type { ColumnsOf, Queryable } from '../statements/statement.ts';

/** Who paused a version, when and why, as the registry keeps it. Nulls if it is not paused. */
export type StoredPause = ColumnsOf<'refold.projections', 'paused_at' | 'paused_by' | 'paused_reason'>;

/** A pause of a version: nobody maintains it until an operator resumes it. */
export interface Pause {
  readonly by: string;
  readonly reason: string;
  readonly since: string;
}

/** SQL for the pause of a row of refold.projections: {@link Pause} as JSON, or null. */
export const pauseSql = `case when paused_at is not null then json_build_object('by', paused_by, 'reason', paused_reason, 'since', paused_at) end`;

/**
 * Pauses a version, or resumes it with null. Raises the epochs of its processors and of its rebuild, so their owners commit nothing more: a pause
 * is complete when its transaction is.
 */
export async function writePause(
  tx: Queryable,
  name: string,
  version: number,
  pause: Pick<Pause, 'by' | 'reason'> | null,
): Promise<void> {
  await tx.query({
    text: `
      with fenced as (
        update refold.processors
        set epoch = epoch + 1, owner = null, status = case when status = 'stopped' then status else 'idle' end, updated_at = now()
        where name = $1 and version = $2
      ), fenced_rebuild as (
        update refold.rebuilds
        set epoch = epoch + 1, owner = null, status = case when status = 'stopped' then status else 'idle' end, updated_at = now()
        where name = $1 and version = $2
      )
      update refold.projections
      set
        paused_at = case when $3::text is not null then now() end,
        paused_by = $3,
        paused_reason = $4
      where name = $1 and version = $2`,
    values: [name, version, pause?.by ?? null, pause ? storedText(pause.reason) : null],
  });
}
