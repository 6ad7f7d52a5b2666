import type { EventMetadata, RecordedEvent } from '../events/event.ts';
import { type EventFamily, upcast } from '../events/event-family.ts';
import { type GlobalPosition, globalPosition } from '../events/global-position.ts';
import { isoTimestamp } from './column-parsers.ts';
import { copiedText } from './copy-rows.ts';

/** The columns that {@link decodePage} takes, in its order. */
export const copiedColumns =
  'position, stream_position, recorded_at, id, payload_version, family, stream_id, type, metadata, payload';

const tab = 9;

/** The position in a copied row. */
export function copiedPosition(line: Buffer): GlobalPosition {
  return globalPosition(BigInt(line.toString('latin1', 0, line.indexOf(tab))));
}

/**
 * Makes events of copied rows. All JSON of a page is parsed in one go, which is faster than piece by piece.
 *
 * A row's short columns are cut from a text of their own, not from the page's: a key that a projection keeps in memory
 * must not hold a whole page there, nor a large payload.
 */
export function decodePage(lines: readonly Buffer[], families: ReadonlyMap<string, EventFamily>): RecordedEvent[] {
  const rows: string[][] = [];
  const json: string[] = [];
  for (const line of lines) {
    const payloadStart = line.lastIndexOf(tab) + 1;
    const metadataStart = line.lastIndexOf(tab, payloadStart - 2) + 1;
    rows.push(line.toString('utf8', 0, metadataStart - 1).split('\t'));
    json.push(copiedJson(line.toString('utf8', metadataStart, payloadStart - 1)));
    json.push(copiedJson(line.toString('utf8', payloadStart)));
  }
  const parsed: unknown[] = JSON.parse(`[${json.join(',')}]`);
  return rows.map((columns, index) => {
    const [position, streamPosition, recordedAt, id, version, familyName, streamId, type] = columns as Columns;
    const family = families.get(familyName);
    const payload = parsed[index * 2 + 1];
    return {
      id,
      family: familyName,
      streamId: copiedText(streamId),
      streamPosition: Number(streamPosition),
      position: globalPosition(BigInt(position)),
      type,
      payload: family ? upcast(family, type, Number(version), payload) : payload,
      payloadVersion: Number(version),
      metadata: parsed[index * 2] as EventMetadata, // the column holds objects only
      recordedAt: isoTimestamp(recordedAt),
    };
  });
}

/** The short columns of a line: all but metadata and payload. */
type Columns = [string, string, string, string, string, string, string, string];

// What PostgreSQL writes as JSON has no control characters, so that COPY escapes nothing in it but backslashes.
function copiedJson(field: string): string {
  return field.includes('\\') ? field.replaceAll('\\\\', '\\') : field;
}
