import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { storedFilter } from '../../events/event-names.ts';
import type { EventFilter, Projection } from '../../projections/projection/projection.ts';

/** Where the events of a batch come from. $1 and $2 are the bounds of the batch, $3 are its upcast events, if `upcast` names types. */
export interface BatchSource {
  /** Event types that are read, upcast and sent with the batch: their stored payloads may have an older version, or the log is elsewhere. */
  readonly upcast: readonly EventFilter[];
  /** The condition that selects the events that stay in the database; null if there are none. */
  readonly inBatch: string | null;
  /** A select of the batch. */
  readonly select: string;
}

/** The columns of `batch`. */
export const batchColumnNames = [
  'position',
  'id',
  'family',
  'stream_id',
  'stream_position',
  'type',
  'payload',
  'metadata',
  'recorded_at',
] as const;

/** @param ships whether all events are sent with the batch, because the log is in another database */
export function batchSource({ families, filter }: Projection, ships: boolean): BatchSource {
  const hasUpcasters = (family: string, type: string) =>
    ships || (families.find(({ name }) => name === family)?.upcasters[type]?.length ?? 0) > 0;
  const ofTypes = (upcast: boolean) =>
    filter
      .map(({ family, types }) => ({ family, types: types.filter((type) => hasUpcasters(family, type) === upcast) }))
      .filter(({ types }) => types.length > 0);
  const stored = storedFilter(families, ofTypes(false));
  const upcast = ofTypes(true);
  const inBatch = stored.length > 0 ? `position > $1 and position <= $2 and ${matching(stored)}` : null;
  const selects = [
    ...(inBatch === null ? [] : [`select ${columnsOf(families)} from refold.events where ${inBatch}`]),
    ...(upcast.length === 0
      ? []
      : [
          `select ${columnsOf([])} from json_to_recordset($3) as upcast (${columnTypes}) where position > $1 and position <= $2`,
        ]),
  ];
  return { upcast, inBatch, select: selects.join(' union all ') };
}

/** The columns of `batch`, with the declared names of these families and their types. */
function columnsOf(renamed: readonly EventFamily[]): string {
  const families = renamed.flatMap(({ name, storedName }) =>
    name === storedName ? [] : [`when family = '${storedName}' then '${name}'`],
  );
  const types = renamed.flatMap(({ storedName, declaredTypes }) =>
    Object.entries(declaredTypes).flatMap(([stored, type]) =>
      type === stored ? [] : [`when family = '${storedName}' and type = '${stored}' then '${type}'`],
    ),
  );
  const declared = (column: string, cases: readonly string[]) =>
    cases.length === 0 ? column : `case ${cases.join(' ')} else ${column} end as ${column}`;
  return batchColumnNames
    .map((column) =>
      column === 'family' ? declared(column, families) : column === 'type' ? declared(column, types) : column,
    )
    .join(', ');
}

const columnTypes =
  'position bigint, id uuid, family text, stream_id text, stream_position bigint, type text, payload jsonb, metadata jsonb, recorded_at timestamptz';

/** An upcast event as a row of `batch`. */
export function batchRow(event: RecordedEvent): Record<(typeof batchColumnNames)[number], unknown> {
  return {
    position: event.position.toString(),
    id: event.id,
    family: event.family,
    stream_id: event.streamId,
    stream_position: event.streamPosition,
    type: event.type,
    payload: event.payload,
    metadata: event.metadata,
    recorded_at: event.recordedAt,
  };
}

/**
 * Names contain only letters, digits and _, checked when the events are declared. As literals they let the planner estimate how many events
 * match.
 */
function matching(filter: readonly EventFilter[]): string {
  const families = filter.map(
    ({ family, types }) => `family = '${family}' and type in (${types.map((type) => `'${type}'`).join(', ')})`,
  );
  return families.length === 1 ? families.join() : `(${families.map((one) => `(${one})`).join(' or ')})`;
}
