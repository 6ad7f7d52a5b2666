import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';
import { createRowCodec, type Row } from '../../../src/projections/columns/row-codec.ts';
import { fold, foldSteps } from '../../../src/projections/fold/fold.ts';
import { createRecorder } from '../../support/in-memory.ts';

const line = t.object({ name: t.text(), tags: t.list(t.text()).default(['new']) });
const columns = { id: t.integer().primaryKey(), document: t.json<Json>(), lines: t.list(line) };
// biome-ignore lint/suspicious/noExplicitAny: of any shape
type Json = any;

const codec = createRowCodec(columns, ['id']);
const row = (document: Json, lines: readonly object[] = [], before?: Row) =>
  codec.normalise({ document, lines }, [1], before) as { document: Json; lines: Json };

describe('the parts of a document that evolve passes on are not copied:', () => {
  const before = row({ list: [{ a: 1 }, { b: [2] }, { c: { d: 3 } }], other: { e: 4 } }, [
    { name: 'a' },
    { name: 'b' },
  ]);
  const { list, other } = before.document;

  test('the parts beside a new entry', () => {
    const { document } = row({ list: [...list, { z: 1 }], other }, [], before);
    expect(document.other).toBe(other);
    for (const index of [0, 1, 2]) expect(document.list[index]).toBe(list[index]);
    expect(document.list[3]).toEqual({ z: 1 });
  });

  test('items that move within their list', () => {
    const { document } = row({ list: [{ z: 1 }, list[2], list[0]] }, [], before);
    expect(document.list[1]).toBe(list[2]);
    expect(document.list[2]).toBe(list[0]);
  });

  test('the parts of an object that is replaced', () => {
    const { document } = row({ list: list.map((entry: Json) => ({ ...entry, z: 1 })) }, [], before);
    expect(document.list[1].b).toBe(list[1].b);
    expect(document.list[2].c).toBe(list[2].c);
  });

  test('a document, a list, and objects in one', () => {
    const { document, lines } = row(before.document, [{ name: 'c' }, ...before.lines], before);
    expect(document).toBe(before.document);
    expect(lines[1]).toBe(before.lines[0]);
    expect(row(document, lines, before).lines[2]).toBe(before.lines[1]);
    const renamed = row(document, [{ ...before.lines[0], name: 'z' }], before).lines[0];
    expect(renamed).toEqual({ name: 'z', tags: ['new'] });
    expect(renamed.tags).toBe(before.lines[0].tags);
  });
});

describe('a row holds no object twice, like a row read from a table:', () => {
  const before = row({ list: [{ a: {} }, { b: {} }] }, [{ name: 'a' }, { name: 'b' }]);
  const [one, another] = before.document.list;

  test.each<[string, Json, (document: Json) => readonly unknown[]]>([
    ['in a list', { list: [one, one, another, one] }, ({ list }) => list],
    ['within itself', { list: [one, another], copy: { list: [one] } }, ({ list, copy }) => [list[0], copy.list[0]]],
    ['with a part of it', { list: [one], copy: one.a }, ({ list, copy }) => [list[0].a, copy]],
    ['in a copy of its container', { list: [{ ...one }, one] }, ({ list }) => list.map(({ a }: Json) => a)],
    ['a new one', { list: Array(2).fill({ z: 1 }) }, ({ list }) => list],
  ])('%s', (_, document, parts) => {
    const made = row(document, [], before).document;
    expect(made).toEqual(document);
    expect(new Set(parts(made)).size).toBe(parts(made).length);
  });

  test('by default', () => {
    const { lines } = row({}, [{ name: 'a' }, { name: 'b' }]);
    expect(lines[0].tags).toEqual(lines[1].tags);
    expect(lines[0].tags).not.toBe(lines[1].tags);
  });
});

test('a part that was read from the table is made canonical, even if it has been changed in place since', () => {
  const read = codec.decode(codec.encode(JSON.parse(JSON.stringify(row({ list: [{ a: 1 }] }))))) as { document: Json };
  read.document.list[0].at = new Date(0);
  const { document } = row({ list: read.document.list }, [], read as unknown as Row);
  expect(document).toEqual({ list: [{ a: 1, at: '1970-01-01T00:00:00.000Z' }] });
});

test('a member that JSON leaves out is left out, for any name', () => {
  const members = ['constructor', 'toString', '__proto__', 'a'].map((name) => [name, Symbol(name)]);
  expect(row(Object.fromEntries(members)).document).toEqual({});
});

describe('in production, where rows are not frozen,', () => {
  const notes = defineEvents('notes', { Noted: z.object({ note: z.record(z.string(), z.number()) }) });
  type Notes = { readonly document: Json; readonly lines: readonly Json[] } | null;

  async function folded(evolve: (row: Notes, note: object) => object) {
    const projection = defineProjection({
      name: 'notes',
      version: 1,
      events: notes,
      table: columns,
      key: () => 1,
      evolve: { Noted: (before, { payload }) => evolve(before, payload.note) as { document: Json; lines: Json } },
    });
    const noted = (note: object) => ({ type: 'Noted', payload: { note } });
    const events = await createRecorder()({
      family: notes,
      streamId: 'one',
      events: [noted({ b: 1, a: 2 }), noted({ c: 3 })],
    });
    const rows = new Map<string, Row | null>();
    const memory = {
      get: (text: string) => rows.get(text) ?? null,
      set: (text: string, _: unknown, next: Row | null) => void rows.set(text, next),
    };
    fold(projection, foldSteps(projection, events), memory, { freeze: false });
    return { row: [...rows.values()][0], events };
  }

  const changing: readonly [string, (row: NonNullable<Notes>) => void, string][] = [
    ['a document', ({ document }) => document.notes.push(1), 'object is not extensible'],
    ['a part of a document', ({ document }) => delete document.notes[0].a, 'Cannot delete'],
    ['an object in a list', ({ lines }) => Object.assign(lines[0], { name: 'b' }), 'read only property'],
  ];
  test.each(changing)('an evolve that changes %s fails at that place', async (_, change, reason) => {
    const folding = folded((before, note) => {
      if (before) change(before);
      return { document: { notes: [note] }, lines: [{ name: 'a' }] };
    });
    await expect(folding).rejects.toMatchObject({
      code: 'EVOLVE_FAILED',
      message: expect.stringMatching(new RegExp(`${reason}.*Rows and events are immutable`)),
    });
  });

  test('objects that evolve returned, or received in an event, stay its own and may be changed later', async () => {
    const returned: Json[] = [];
    const { row, events } = await folded((before, note) => {
      for (const one of returned) one.document.notes[0].changed = 1;
      const notes = [...(before?.document.notes ?? []), note];
      const next = { document: { notes, ...(before && { first: before.document.notes[0] }) }, lines: [] };
      if (!before) returned.push(next);
      return next;
    });
    expect(row?.document).toEqual({ notes: [{ a: 2, b: 1 }, { c: 3 }], first: { a: 2, b: 1 } });
    expect(events[0]?.payload).toEqual({ note: { a: 2, b: 1, changed: 1 } });
  });
});
