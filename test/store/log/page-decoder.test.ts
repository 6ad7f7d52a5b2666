import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { defineEvents } from '../../../src/events/event-family.ts';
import { globalPosition } from '../../../src/events/global-position.ts';
import { unreadable } from '../../../src/events/read-payload.ts';
import { createPageCollector } from '../../../src/store/log/page-bytes.ts';
import { createPageDecoder, lastCopiedPosition } from '../../../src/store/log/page-decoder.ts';
import { isoTimestamp } from '../../../src/store/statements/column-parsers.ts';

const note = defineEvents(
  'note',
  { Written: z.object({ text: z.unknown(), wasOld: z.boolean() }), Burnt: z.unknown() },
  {
    upcasters: {
      Written: [(text) => ({ text }), (payload: { text: unknown }) => ({ ...payload, wasOld: true })],
    },
  },
);
const families = new Map([[note.name, note]]);

const special = fc.constantFrom(
  '\\',
  '"',
  '\t',
  '\n',
  '\r',
  '\v',
  '\b',
  '\f',
  '\\n',
  '\\\\',
  '\u0001',
  '\u007f',
  'ü',
  '😀',
);
const odd = fc
  .array(fc.oneof(special, fc.string({ unit: 'binary', maxLength: 4 }), fc.string({ maxLength: 20 })), { maxLength: 6 })
  .map((parts) => parts.join('').replaceAll('\u0000', '').toWellFormed());
const value = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    odd,
    fc.constantFrom(null, true, 0, -1.5, 1e300, 2 ** 63, '', '__proto__'),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(odd, tie('json'), { maxKeys: 4 }),
  ),
})).json;
const row = fc.record({
  position: fc.nat().map((n) => BigInt(n) * 60_000n),
  streamPosition: fc.integer({ min: 1, max: 2 ** 31 }),
  recordedAt: fc.constantFrom(
    '2026-01-31 12:00:00+00',
    '2026-01-31 12:00:00.1+00',
    '2026-01-31 12:00:00.12+00',
    '2026-01-31 12:00:00.123+00',
    '2026-01-31 12:00:00.123456+00',
    '12026-01-31 12:00:00.123456+00',
    '0044-03-15 12:00:00.123456+00 BC',
    'infinity',
  ),
  id: fc.uuid(),
  version: fc.constantFrom(1, 2, 3, 4),
  family: fc.constantFrom('note', 'unknown'),
  type: fc.constantFrom('Written', 'Burnt', 'constructor'),
  streamId: odd,
  metadata: fc.oneof(fc.constant({}), fc.dictionary(odd, value, { maxKeys: 3 })),
  payload: value,
});
type Row = typeof row extends fc.Arbitrary<infer R> ? R : never;

// Escapes a text as PostgreSQL's COPY does.
const escapes: Record<string, string> = {
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};
const copied = (text: string) => text.replace(/[\\\b\f\n\r\t\v]/g, (char) => escapes[char] ?? char);

function copiedRow(row: Row): Buffer {
  const { position, streamPosition, recordedAt, id, version, family, type, streamId, metadata, payload } = row;
  const json = [JSON.stringify(metadata), JSON.stringify(payload)];
  const columns = [position, streamPosition, recordedAt, id, version, family, type, streamId, ...json];
  return Buffer.from(`${columns.map((column) => copied(String(column))).join('\t')}\n`);
}

/** An event with the code of the error instead of a payload that can't be read. */
function read(event: RecordedEvent) {
  const { payload: _, ...others } = Object.getOwnPropertyDescriptors(event);
  const unread = unreadable(event);
  if (unread) expect(() => event.payload).toThrow(unread);
  return { ...Object.defineProperties({}, others), payload: unread ? unread.code : event.payload };
}

function eventOf({ version, recordedAt, position, payload, metadata, ...same }: Row) {
  const stored: unknown = JSON.parse(JSON.stringify(payload));
  const isOld = same.family === 'note' && same.type === 'Written' && version < 3;
  const isUnknown = same.family === 'note' && version > (same.type === 'Written' ? 3 : 1);
  const upcast = version === 1 ? { text: stored, wasOld: true } : { ...(stored as object), wasOld: true };
  return {
    ...same,
    position: globalPosition(position),
    payload: isUnknown ? 'PAYLOAD_VERSION_UNKNOWN' : isOld ? upcast : stored,
    payloadVersion: version,
    metadata: JSON.parse(JSON.stringify(metadata)),
    recordedAt: isoTimestamp(recordedAt),
  };
}

describe('a page of copied rows', () => {
  test('becomes the events that were written, for any texts and JSON', async () => {
    const decode = createPageDecoder(families);
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 12 }), async (rows) => {
        const collector = createPageCollector();
        for (const one of rows) collector.add(copiedRow(one));
        const page = collector.collected();
        expect(lastCopiedPosition(page)).toBe(rows.at(-1)?.position);
        expect((await decode(page)).map(read)).toEqual(rows.map(eventOf));
      }),
      { numRuns: 500 },
    );
  });

  test('may be longer than the decoder’s initial memory', async () => {
    const [one] = fc.sample(row, { seed: 1, numRuns: 1 });
    if (!one) throw new Error('a sample has as many as were asked for');
    const rows = [1, 5000, 1, 100_000, 1].map((length, index) => ({
      ...one,
      position: BigInt(index),
      payload: { text: 'x'.repeat(length) },
    }));
    const collector = createPageCollector();
    for (const each of rows) collector.add(copiedRow(each));
    expect((await createPageDecoder(families)(collector.collected())).map(read)).toEqual(rows.map(eventOf));
  });

  test('has separate metadata for each event', async () => {
    const collector = createPageCollector();
    const [one] = fc.sample(row, { seed: 1, numRuns: 1 });
    if (!one) throw new Error('a sample has as many as were asked for');
    collector.add(copiedRow({ ...one, metadata: {} }));
    collector.add(copiedRow({ ...one, metadata: {} }));
    const [first, second] = await createPageDecoder(families)(collector.collected());
    expect(first?.metadata).not.toBe(second?.metadata);
    expect(Object.isFrozen(first?.metadata)).toBe(false);
  });
});
