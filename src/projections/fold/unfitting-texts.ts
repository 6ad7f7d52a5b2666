import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { beginning } from '../../events/global-position.ts';
import { blankRow } from '../columns/blank-row.ts';
import type { Row } from '../columns/row-codec.ts';
import { textLimits } from '../columns/text-limits.ts';
import type { Projection } from '../projection/projection.ts';

type UnplacedEvent = Omit<RecordedEvent, 'position' | 'streamPosition' | 'recordedAt'>;

/** Refuses an event before it is written. `json`: its payload and metadata, and maybe more. @throws RefoldError `TEXT_TOO_LONG` */
export type TextCheck = (event: UnplacedEvent, json: string) => void;

interface Reader {
  readonly projection: Projection;
  /** The smallest limit of its texts, in bytes. */
  readonly least: number;
}

/**
 * Refuses events with a text that does not fit an indexed column: one client's input would stop the read model for everybody. Only `evolve`
 * knows which text goes where, so it is tried without the database: on no row and on a blank row, since many handlers ignore events without
 * a row. An event that is not longer than the smallest limit is not tried. Read models that skip such events do not refuse them.
 */
export function createTextCheck(projections: readonly Projection[]): TextCheck {
  const readers = new Map<string, Reader[]>();
  for (const projection of projections) {
    const limits = Object.values(textLimits(projection.columns, projection.keyColumns));
    if (limits.length === 0 || projection.onError.policy === 'skip') continue;
    const reader = { projection, least: Math.min(...limits) };
    for (const { family, types } of projection.filter)
      for (const type of types) {
        const name = `${family} ${type}`;
        readers.set(name, [...(readers.get(name) ?? []), reader]);
      }
  }
  return (event, json) => {
    for (const { projection, least } of readers.get(`${event.family} ${event.type}`) ?? [])
      if (json.length * 3 > least && Buffer.byteLength(json) > least) tryOn(projection, event);
  };
}

function tryOn(projection: Projection, event: UnplacedEvent): void {
  // A copy: `evolve` may change what it gets. The places are not known yet.
  const copy = () => ({
    ...structuredClone(event),
    position: beginning,
    streamPosition: 1,
    recordedAt: new Date(0).toISOString(),
  });
  const keys = fitting(projection, () => projection.keysOf(copy())) ?? [];
  if (projection.sqlFold) return;
  for (const key of keys) {
    fitting(projection, () => projection.apply(null, copy(), key));
    const blank = fitting(projection, (): Row => blankRow(projection.columns, projection.codec, key));
    if (blank) fitting(projection, () => projection.apply(blank, copy(), key));
  }
}

/** What the application's code returns; undefined if it fails for another reason, which the fold finds. */
function fitting<T>(projection: Projection, run: () => T): T | undefined {
  try {
    return run();
  } catch (cause) {
    if (!(cause instanceof RefoldError) || cause.code !== 'INVALID_ROW' || cause.fields.maxBytes === undefined) return;
    const { column, bytes, maxBytes } = cause.fields;
    throw new RefoldError(
      'TEXT_TOO_LONG',
      `'${String(column)}' would hold ${String(bytes)} bytes; ${String(maxBytes)} are the most. Nothing was written.`,
      { projection: projection.id, column, bytes, maxBytes },
      { cause },
    );
  }
}
