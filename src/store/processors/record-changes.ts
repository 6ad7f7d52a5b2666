import type { GlobalPosition } from '../../events/global-position.ts';
import { keysText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import { isTracing, recordedTraceparent } from '../../tracing.ts';
import type { Queryable } from '../statements/statement.ts';
import { insertChangesText } from './changes.ts';
import { checkpointChannel } from './checkpoint-notifications.ts';

/** The rows that a batch changed, for subscriptions. */
export interface RecordedChanges {
  readonly projection: Pick<Projection, 'name' | 'version'>;
  readonly checkpoint: GlobalPosition;
  readonly upserted: readonly RowKey[];
  readonly deleted: readonly RowKey[];
}

/** Records which keys a batch changed, and notifies listeners when it commits. */
export async function recordChanges(tx: Queryable, changes: RecordedChanges): Promise<void> {
  await tx.query({ name: 'tell changes', text: recordChangesText(1), values: recordChangesValues(changes) });
}

/** The statement, with {@link recordChangesValues} as its parameters, numbered from `first`. It can follow other CTEs of a `with`. */
export function recordChangesText(first: number): string {
  const [name, version, checkpoint, upserted, deleted, traceparent] = [0, 1, 2, 3, 4, 5].map(
    (offset) => `$${first + offset}`,
  );
  return `${first === 1 ? 'with' : ','} kept as (
      ${insertChangesText(`values (${name}, ${version}, 0, ${checkpoint}, ${upserted}, ${deleted}, ${traceparent})`)}
    )
    select pg_notify('${checkpointChannel}', ${name}::text || '@' || ${version}::text || ':' || ${checkpoint}::text)`;
}

export function recordChangesValues({
  projection: { name, version },
  checkpoint,
  upserted,
  deleted,
}: RecordedChanges): unknown[] {
  return [name, version, checkpoint, keysText(upserted), keysText(deleted), isTracing ? recordedTraceparent() : null];
}
