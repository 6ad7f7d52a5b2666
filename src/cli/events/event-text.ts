import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import type { LogEvent, WholeEvent } from './read-events.ts';

/** Formats events as a table; payloads, if there are any, as JSON in the last column. */
export function eventsToText(events: readonly LogEvent[]): string {
  const payloads = events.some((event) => 'payload' in event);
  return textTable(
    ['position', 'recorded', 'event', 'stream', 'number', 'correlation', ...(payloads ? ['payload'] : [])],
    events.map((event) => [
      integer(BigInt(event.position)),
      event.recordedAt,
      event.type,
      `${event.family}/${event.streamId}`,
      integer(BigInt(event.streamPosition)),
      event.correlationId ?? '-',
      ...(payloads ? [JSON.stringify(event.payload)] : []),
    ]),
  );
}

/** Formats one event as it arrives, without knowing the width of the next ones. */
export function eventLine(event: LogEvent): string {
  const { position, recordedAt, family, streamId, streamPosition, type, correlationId } = event;
  const words = [integer(BigInt(position)), recordedAt, type, `${family}/${streamId}`, streamPosition];
  const payload = 'payload' in event ? [JSON.stringify(event.payload)] : [];
  return [...words, correlationId ?? '-', ...payload].join('  ');
}

/** Formats everything that the log has of an event. */
export function eventToText(event: WholeEvent): string {
  const { position, recordedAt, family, streamId, streamPosition, type, payloadVersion, id, metadata } = event;
  const lines: readonly (readonly [string, string])[] = [
    ['position', integer(BigInt(position))],
    ['event', type],
    ['id', id],
    ['recorded', recordedAt],
    ['stream', `${family}/${streamId}, event ${integer(BigInt(streamPosition))}`],
    ['payload version', String(payloadVersion)],
    ['metadata', JSON.stringify(metadata, null, 2)],
    ['payload', JSON.stringify(event.payload, null, 2)],
  ];
  return lines.map(([name, value]) => `${name.padEnd(16)}${value}`).join('\n');
}
