import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable, versionUnknown } from '../../events/read-payload.ts';
import { evolveFailed, versionUnknownTo } from '../../projections/fold/fold-failures.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { onlyRow, type Queryable, type TableRow } from '../statements/statement.ts';
import type { RowChoice } from './row-choice.ts';

/** A part of the log that one statement folds: the positions in `(after, upTo]`, at or below a horizon of an earlier statement. */
export interface SqlBatch {
  readonly after: GlobalPosition;
  readonly upTo: GlobalPosition;
  /** The batch's events of types with upcasters, upcast. Events of other types stay in the database. */
  readonly upcast: readonly RecordedEvent[];
  /** Which rows are merged. @default all */
  readonly choice?: RowChoice;
  /** Which of the events are counted, if several partitions fold the batch: each event by one of them. @default all */
  readonly counted?: { readonly partition: number; readonly of: number };
}

/**
 * Checks that all events of a batch can be read, before SQL reads them, and counts those that stay in the database: their payloads must have
 * version 1, because SQL reads them as they are. A condition within the statement could be evaluated after an expression of the declaration.
 *
 * @param inBatch the condition that selects the events that stay in the database; null if there are none. $1 is `after`, $2 is `upTo`
 * @throws RefoldError at the first event that can't be read: `PAYLOAD_VERSION_UNKNOWN`, or `EVOLVE_FAILED` if an upcaster failed
 */
export async function countReadable(
  db: Queryable,
  projection: Projection,
  { after, upTo, upcast, counted = { partition: 0, of: 1 } }: SqlBatch,
  inBatch: string | null,
): Promise<number> {
  const { partition, of } = counted;
  const stored =
    inBatch === null
      ? noneStored
      : onlyRow(await db.query<Stored>({ ...checking(inBatch), values: [after, upTo, of, partition] }));
  const unread = upcast.find((event) => unreadable(event) !== undefined);
  if (stored.unread !== null && (unread === undefined || stored.unread < unread.position))
    throw await unknownAt(db, projection, stored.unread);
  if (unread) throw errorOf(projection, unread);
  return Number(stored.events) + upcast.filter(({ position }) => position % BigInt(of) === BigInt(partition)).length;
}

interface Stored {
  readonly events: bigint;
  /** The position of the first event with another payload version than 1. */
  readonly unread: bigint | null;
}

const noneStored: Stored = { events: 0n, unread: null };

function checking(inBatch: string): { text: string } {
  return {
    text: `
      select
        count(*) filter (where position % $3 = $4) as events,
        min(position) filter (where payload_version <> 1) as unread
      from refold.events
      where ${inBatch}`,
  };
}

function errorOf(projection: Projection, event: RecordedEvent): Error {
  const error = unreadable(event);
  return isVersionUnknown(error)
    ? versionUnknownTo(projection, error)
    : evolveFailed(projection, event, 'upcast', error?.cause);
}

async function unknownAt(db: Queryable, projection: Projection, position: bigint): Promise<Error> {
  const event = onlyRow(
    await db.query<Pick<TableRow<'refold.events'>, 'family' | 'type' | 'stream_id' | 'payload_version'>>({
      text: 'select family, type, stream_id, payload_version from refold.events where position = $1',
      values: [position],
    }),
  );
  const { stream_id: streamId, payload_version: payloadVersion } = event;
  const family = projection.families.find(({ storedName }) => storedName === event.family);
  if (!family) throw new TypeError(`${projection.id} does not read ${event.family}`); // the condition selects its families only
  const type = family.declaredTypes[event.type] ?? event.type;
  const place = { type, streamId, payloadVersion, position: globalPosition(position) };
  return versionUnknownTo(projection, versionUnknown(family, place));
}
