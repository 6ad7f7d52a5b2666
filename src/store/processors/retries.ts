import type { Queryable } from '../statements/statement.ts';
import type { ProcessorRetry } from '../statements/stored-json.ts';
import type { ProcessorClaim } from './checkpoints.ts';

/**
 * Records that the owner of a version's processor tries an event again after a pause, in milliseconds. A rebuild has no such record. It stays when
 * the event succeeds: it means nothing once the checkpoint has reached its position.
 */
export async function recordRetry(
  db: Queryable,
  { kind, name, version, partition, epoch }: ProcessorClaim,
  retry: Omit<ProcessorRetry, 'nextAt'>,
  pauseMs: number,
): Promise<void> {
  if (kind !== 'processor') return;
  await db.query({
    text: `
      update refold.processors
      set
        retries = retries + 1,
        retrying = $5::jsonb || jsonb_build_object('nextAt', statement_timestamp() + $6 * interval '1 ms'),
        updated_at = now()
      where name = $1 and version = $2 and partition = $3 and epoch = $4`,
    values: [name, version, partition, epoch, JSON.stringify(retry), pauseMs],
  });
}
