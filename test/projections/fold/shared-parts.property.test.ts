import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, type Projection, t } from '../../../src/index.ts';
import { checkJson } from '../../../src/projections/columns/json-values.ts';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { fold, foldSteps } from '../../../src/projections/fold/fold.ts';
import { anyDocument, anyEdit, type Edit, edited, partsOf, plainly } from '../../support/document-edits.ts';
import { createRecorder } from '../../support/in-memory.ts';

const line = t.object({
  name: t.text(),
  amount: t.decimal(20, 4).default('0'),
  tags: t.list(t.text()).default(['new']),
  note: t.json().nullable(),
});
const table = {
  id: t.text().primaryKey(),
  document: t.json(),
  other: t.json().nullable(),
  first: line.nullable(),
  lines: t.list(line),
  /** Everything that evolve can observe of the row that it was given. */
  seen: t.text(),
};

const edits = defineEvents('edits', { Edited: z.object({}) });
const edit = { type: 'Edited', payload: {} };
const columns = ['document', 'other', 'first', 'lines'] as const;

/** Which parts of a row are the same object, and the keys of each in order. */
function seenOf(row: Row): string {
  const parts = columns.flatMap((name) => partsOf(row[name]));
  return JSON.stringify([columns.map((name) => row[name]), parts.map((part) => parts.indexOf(part))]);
}

interface ListEdit {
  readonly kind: 'append' | 'prepend' | 'drop' | 'reverse' | 'twice' | 'rename' | 'share' | 'default' | 'first';
  readonly at: number;
  readonly from: number;
}

const anyListEdit: fc.Arbitrary<ListEdit> = fc.record({
  kind: fc.constantFrom('append', 'prepend', 'drop', 'reverse', 'twice', 'rename', 'share', 'default', 'first'),
  at: fc.nat(),
  from: fc.nat(),
});

type Line = Readonly<Record<string, unknown>>;

function editedLines(row: { lines: readonly Line[]; first: Line | null }, { kind, at, from }: ListEdit) {
  const { lines, first } = row;
  const one = lines[at % lines.length];
  const another = lines[from % lines.length];
  const fresh = { name: `line ${at}`, amount: '1.50', note: { at, z: 1, a: [from] } };
  switch (kind) {
    case 'append':
      return { lines: [...lines, fresh] };
    case 'prepend':
      return { lines: [fresh, ...lines] };
    case 'drop':
      return { lines: lines.filter((entry) => entry !== one) };
    case 'reverse':
      return { lines: lines.toReversed() };
    case 'twice':
      return one ? { lines: [...lines, one] } : {};
    case 'rename':
      return { lines: lines.map((entry) => (entry === one ? { ...entry, name: `renamed ${from}` } : entry)) };
    case 'share':
      return {
        lines: lines.map((entry) => (entry === one ? { ...entry, tags: another?.tags, note: another?.note } : entry)),
      };
    case 'default':
      return { lines: lines.map((entry) => (entry === one ? { name: 'new' } : entry)) };
    case 'first':
      return { first: one ?? null, lines: first ? [...lines, first] : lines };
  }
}

const anyStep = fc.oneof(
  fc.record({ column: fc.constantFrom('document' as const, 'other' as const), edit: anyEdit }),
  fc.record({ lines: anyListEdit }),
  fc.constant('swap' as const),
);
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

const notTooLong = 4000;

/** A projection whose evolve applies these edits, event by event. They can hold what JSON can't carry in a payload. */
function editing(batches: readonly (readonly Step[])[]): Projection {
  return defineProjection({
    name: 'edited',
    version: 1,
    events: edits,
    table,
    key: (event) => event.streamId,
    evolve: {
      Edited(row, event) {
        let next: Record<string, unknown> = { ...(row ?? { document: {}, other: null, first: null, lines: [] }) };
        for (const step of batches[Number(event.position) - 1] ?? []) {
          const before = next;
          if (step === 'swap') next = { ...next, document: next.other, other: next.document };
          else if ('lines' in step) next = { ...next, ...editedLines(next as never, step.lines) };
          else next = { ...next, [step.column]: edited(next[step.column], step.edit as Edit) };
          if (plainly(next.document) === null || JSON.stringify(next).length > notTooLong) next = before;
          if (plainly(next.other) === null) next.other = null;
        }
        return { ...next, seen: row ? seenOf(row) : '' } as never;
      },
    },
  });
}

describe('a row whose documents share parts with earlier ones', () => {
  test('equals the row built from the one read back from its table, and so does what evolve sees', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyStep, { maxLength: 3 }), { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        async (batches, freeze) => {
          const projection = editing(batches);
          const append = { family: edits, streamId: 'one', events: batches.map(() => edit) };
          const events = await createRecorder()(append);
          const kept = new Map<string, Row | null>();
          const readBack = new Map<string, Row | null>();
          for (const event of events) {
            for (const rows of [kept, readBack]) {
              const memory = { get: (text: string) => rows.get(text) ?? null, set: setIn(rows) };
              fold(projection, foldSteps(projection, [event]), memory, { freeze });
            }
            for (const [text, row] of readBack) if (row) readBack.set(text, stored(projection, row));
            expect(shown(kept)).toBe(shown(readBack));
            expect([...kept.values()]).toEqual([...readBack.values()]);
          }
          for (const row of kept.values()) {
            const parts = columns.flatMap((name) => partsOf(row?.[name]));
            expect(parts.every(Object.isFrozen)).toBe(true);
            expect(new Set(parts).size).toBe(parts.length);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('holds what the texts of its documents contain', () => {
    fc.assert(
      fc.property(anyDocument, fc.array(anyEdit, { maxLength: 6 }), (document, changes) => {
        let before: unknown;
        for (const change of [undefined, ...changes]) {
          const given = change ? edited(before, change) : document;
          const text = plainly(given);
          if (text === null) expect(() => checkJson(given, 'value', before)).toThrow('expects a JSON value');
          if (text === null || JSON.stringify(text).length > notTooLong) return;
          const canonical = checkJson(given, 'value', before);
          expect(JSON.stringify(canonical)).toBe(JSON.stringify(text));
          expect(canonical).toEqual(text);
          before = canonical;
        }
      }),
      { numRuns: 1000 },
    );
  });
});

function setIn(rows: Map<string, Row | null>) {
  return (text: string, _: unknown, row: Row | null) => void rows.set(text, row);
}

function stored({ codec }: Projection, row: Row): Row {
  return codec.decode(JSON.parse(JSON.stringify(codec.encode(row))));
}

function shown(rows: ReadonlyMap<string, Row | null>): string {
  return JSON.stringify([...rows.values()]);
}
