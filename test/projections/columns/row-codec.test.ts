import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Column, columnLimits, decimal, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { createRowCodec } from '../../../src/projections/columns/row-codec.ts';
import { anyRow, everyColumn } from '../../support/every-column.ts';

const codec = createRowCodec(everyColumn, ['id']);

describe('a row in canonical form', () => {
  test('survives a JSON round trip unchanged, for any values', () => {
    fc.assert(
      fc.property(anyRow, (values) => {
        const normal = codec.normalise(values, ['1']);
        const stored = JSON.parse(JSON.stringify(codec.encode(normal)));
        expect(codec.decode(stored)).toEqual(normal);
      }),
      { numRuns: 500 },
    );
  });

  test('is its own canonical form', () => {
    fc.assert(
      fc.property(anyRow, (values) => {
        const normal = codec.normalise(values, ['1']);
        expect(codec.normalise(normal, ['1'])).toEqual(normal);
      }),
      { numRuns: 500 },
    );
  });

  test('has the keys of a JSON value in the order in which PostgreSQL returns them', () => {
    const { json } = codec.normalise({ ...minimal, json: { long: { b: 1, a: 2 }, ä: 1, zz: 1, b: 2, a: 1 } }, ['1']);
    expect(JSON.stringify(json)).toBe('{"a":1,"b":2,"zz":1,"ä":1,"long":{"a":2,"b":1}}');
  });
});

const minimal = {
  text: '',
  integer: 0,
  big: 0,
  amount: '0',
  flag: false,
  token: '00000000-0000-4000-8000-000000000000',
  blob: new Uint8Array(),
  day: '2026-01-31',
  at: '2026-01-31T12:00:00Z',
  status: 'Opened',
  json: {},
  item: { name: '', count: 0 },
  items: [],
};

describe('each value has one form', () => {
  test.each<[string, Column, unknown, unknown]>([
    ['a decimal with trailing zeros', t.decimal(8, 2), '12.50', decimal('12.5')],
    ['a decimal of minus zero', t.decimal(8, 2), '-0.00', decimal('0')],
    ['a decimal from a bigint', t.decimal(8, 2), 12n, decimal('12')],
    ['an integer of minus zero', t.integer(), -0, 0],
    ['a bigint from a number', t.bigint(), 12, 12n],
    ['a UUID in capitals', t.uuid(), '6F9619FF-8B86-4011-B42D-00CF4FC964FF', '6f9619ff-8b86-4011-b42d-00cf4fc964ff'],
    ['bytes', t.bytes(), new Uint8Array([0, 255, 104]), '\\x00ff68'],
    ['bytes in canonical form', t.bytes(), '\\x00ff68', '\\x00ff68'],
    ['bytes that are a part of a buffer', t.bytes(), new Uint8Array([1, 2, 3]).subarray(1, 2), '\\x02'],
    ['a time without seconds', t.timestamptz(), '2026-01-31 12:00Z', '2026-01-31T12:00:00.000Z'],
    ['a time in another zone', t.timestamptz(), '2026-01-31T01:00:00.5+02', '2026-01-30T23:00:00.500Z'],
    ['a time with microseconds', t.timestamptz(), '2026-01-31T12:00:00.123456Z', '2026-01-31T12:00:00.123456Z'],
    [
      'a time with more digits, which are zero',
      t.timestamptz(),
      '2026-01-31T12:00:00.123456000Z',
      '2026-01-31T12:00:00.123456Z',
    ],
    ['half of a surrogate pair', t.text(), 'a\ud800', 'a\ufffd'],
    ['half of a surrogate pair in JSON', t.json(), { 'a\ud800': ['\udc00'] }, { 'a\ufffd': ['\ufffd'] }],
    ['a date in JSON', t.json(), { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ])('%s', (_, column, value, expected) => {
    const { normalise } = createRowCodec({ id: t.integer().primaryKey(), value: column }, ['id']);
    expect(normalise({ value }, [1])).toEqual({ id: 1, value: expected });
  });
});

describe('a value is refused', () => {
  test.each<[string, Column, unknown, string]>([
    [
      'a number for a decimal',
      t.decimal(8, 2),
      12.5,
      "column 'value' expects an exact decimal (decimal('12.50'), a string or a bigint; a number has already lost exactness), found 12.5.",
    ],
    [
      'a word for a decimal',
      t.decimal(8, 2),
      'ten',
      "column 'value' expects a decimal such as '12.50', found \"ten\".",
    ],
    [
      'too many digits after the point',
      t.decimal(8, 2),
      '1.005',
      "column 'value' is 1.005, with 3 digits after the point; t.decimal(8, 2) holds 2. Round it in evolve (.round(2)) or widen the column.",
    ],
    [
      'too many digits before the point',
      t.decimal(8, 2),
      '1000000',
      "column 'value' is 1000000, too large for t.decimal(8, 2).",
    ],
    [
      'half an integer',
      t.integer(),
      1.5,
      "column 'value' expects a whole number of 32 bits (t.bigint holds more), found 1.5.",
    ],
    [
      'an integer of 33 bits',
      t.integer(),
      2 ** 32,
      "column 'value' expects a whole number of 32 bits (t.bigint holds more), found 4294967296.",
    ],
    [
      'a bigint of 65 bits',
      t.bigint(),
      2n ** 64n,
      "column 'value' expects a bigint of 64 bits, found 18446744073709551616n.",
    ],
    [
      'an unsafe number for a bigint',
      t.bigint(),
      2 ** 60,
      "column 'value' expects a bigint of 64 bits, found 1152921504606847000.",
    ],
    [
      'a day that does not exist',
      t.date(),
      '2026-02-30',
      'column \'value\' expects a date of the calendar, found "2026-02-30".',
    ],
    [
      'a day before the first year',
      t.date(),
      '0000-12-31',
      'column \'value\' expects a date of the calendar, found "0000-12-31".',
    ],
    [
      'a time on a day that does not exist',
      t.timestamptz(),
      '2026-02-30T00:00:00Z',
      'column \'value\' expects a time of the calendar, found "2026-02-30T00:00:00Z".',
    ],
    [
      'a time that its zone moves before the first year',
      t.timestamptz(),
      '0001-01-01T00:00:00+05:00',
      'column \'value\' expects a time of the calendar, found "0001-01-01T00:00:00+05:00".',
    ],
    [
      'a time that its zone moves past the last year',
      t.timestamptz(),
      '9999-12-31T23:59:59-05:00',
      'column \'value\' expects a time of the calendar, found "9999-12-31T23:59:59-05:00".',
    ],
    [
      'a time without a zone',
      t.timestamptz(),
      '2026-01-31T12:00:00',
      "column 'value' expects a time with its zone, such as '2026-01-31T12:00:00Z', found \"2026-01-31T12:00:00\".",
    ],
    [
      'a time with nanoseconds',
      t.timestamptz(),
      '2026-01-31T12:00:00.1234567Z',
      'column \'value\' expects a time to the microsecond at most, found "2026-01-31T12:00:00.1234567Z". Round or cut it in evolve.',
    ],
    [
      'a value outside of the enum',
      t.enum(['Opened', 'Closed']),
      'Open',
      "column 'value' expects one of 'Opened', 'Closed', found \"Open\".",
    ],
    [
      'too many bytes',
      t.bytes({ maxBytes: 2 }),
      new Uint8Array(3),
      "column 'value' holds 3 bytes; 2 are the most. Shorten it, or raise its maxBytes.",
    ],
    ['a text for bytes', t.bytes(), 'aGk=', 'column \'value\' expects a Uint8Array, found "aGk=".'],
    ['a text that is not a UUID', t.uuid(), 'abc', 'column \'value\' expects a UUID, found "abc".'],
    ['a number for a text', t.text(), 1, "column 'value' expects a string, found 1."],
    [
      'a NUL in a text',
      t.text(),
      'a\u0000',
      "column 'value' holds the character U+0000, which can't be stored. Remove it in evolve: PostgreSQL text cannot contain it.",
    ],
    [
      'a NUL in JSON',
      t.json(),
      { a: ['\u0000'] },
      "column 'value' holds the character U+0000, which can't be stored. Remove it in evolve: PostgreSQL text cannot contain it.",
    ],
    ['a function for JSON', t.json(), () => 1, "column 'value' expects a JSON value, found () => 1."],
    ['a value that JSON turns into null', t.json(), Number.NaN, "column 'value' expects a JSON value, found null."],
    ['a bigint in JSON', t.json(), { a: 1n }, 'column \'value\' expects a JSON value, found {"a":"1n"}.'],
    [
      'a text too long for an index entry',
      t.text().index(),
      'ä'.repeat(513),
      "column 'value' has an index and holds 1026 bytes; an indexed text holds at most 1024. Shorten it in evolve. A column that is neither a key nor unique takes any length with .index({ long: true }).",
    ],
    ['null', t.text(), null, "column 'value' is null, but not declared nullable()."],
    [
      'nothing',
      t.text(),
      undefined,
      "column 'value' is missing. Return it, or declare it nullable() or with a default().",
    ],
    ['null in a list', t.list(t.text()), ['a', null], "column 'value[1]' is null, but not declared nullable()."],
    ['an object for a list', t.list(t.text()), {}, "column 'value' expects a list, found {}."],
    ['a list for an object', t.object({ name: t.text() }), [], "column 'value' expects an object, found []."],
    [
      'an unknown field',
      t.object({ name: t.text() }),
      { name: '', nmae: '' },
      "'value' has a field 'nmae' that it does not declare. Did you mean 'name'?",
    ],
    [
      'a missing field',
      t.list(t.object({ name: t.text() })),
      [{}],
      "column 'value[0].name' is missing. Return it, or declare it nullable() or with a default().",
    ],
  ])('%s', (_, column, value, message) => {
    const { normalise } = createRowCodec({ id: t.integer().primaryKey(), value: column }, ['id']);
    expect(() => normalise({ value }, [1])).toThrow(expect.objectContaining({ code: 'INVALID_ROW', message }));
  });

  test('an unknown column', () => {
    const { normalise } = createRowCodec({ id: t.integer().primaryKey(), total: t.integer() }, ['id']);
    expect(() => normalise({ totl: 1 }, [1])).toThrow(
      "the result has a column 'totl' that the table does not declare. Did you mean 'total'?",
    );
  });

  test('a key column that differs from the key of the event', () => {
    expect(() => codec.normalise({ ...minimal, id: '2' }, ['1'])).toThrow(
      `the result has id = "2", but the event's key says "1". Leave key columns out, or return them as 'key' gave them.`,
    );
  });
});

test('defaults and nulls fill in the columns that a row leaves out', () => {
  expect(codec.normalise({ ...minimal, label: undefined }, ['1'])).toMatchObject({
    id: '1',
    label: null,
    counted: 7,
    item: { price: null },
  });
});

test('texts that share an index entry have lower limits, and the limits can be queried', () => {
  const events = defineEvents('shelf', { Placed: z.object({}) });
  const shelf = defineProjection({
    name: 'shelf',
    version: 1,
    events,
    table: {
      hall: t.text().primaryKey(),
      row: t.text().primaryKey(),
      label: t.text().index(),
      code: t.text().unique({ within: 'tenant' }),
      tenant: t.text(),
      note: t.text(),
      width: t.integer(),
      price: t.decimal(10, 2),
    },
    key: () => [],
    evolve: { Placed: (row) => row },
  });
  const { label, code, tenant, note, width, price, hall } = columnLimits(shelf);
  expect([label, hall, code, tenant]).toEqual([888, 888, 1024, 1024].map((maxBytes) => ({ maxBytes })));
  expect([note, width, price]).toEqual([{}, { min: -2_147_483_648, max: 2_147_483_647 }, { precision: 10, scale: 2 }]);
});

test('an indexed text may be as long as an index entry allows', () => {
  const { normalise } = createRowCodec({ id: t.text().primaryKey(), value: t.text().index() }, ['id']);
  expect(normalise({ value: 'x'.repeat(1024) }, ['1'])).toEqual({ id: '1', value: 'x'.repeat(1024) });
});

test('`evolve` reads bytes as a copy of its own: a change of it in place changes no row', () => {
  const files = defineEvents('file', { Written: z.object({}), Touched: z.object({}) });
  const projection = defineProjection({
    name: 'file',
    version: 1,
    events: files,
    table: { hash: t.bytes({ maxBytes: 4 }).primaryKey(), body: t.bytes(), parts: t.list(t.bytes()) },
    key: () => new Uint8Array([1, 2]),
    evolve: {
      Written: (row, _, key) => {
        expect(key).toEqual(new Uint8Array([1, 2]));
        row?.body.fill(9);
        return row ?? { body: new Uint8Array([3]), parts: [new Uint8Array([4])] };
      },
      Touched: (row) => (row ? { ...row, body: new Uint8Array([...row.body, 5]) } : null),
    },
  });
  const event = (type: string) => ({ family: 'file', type, payload: {} }) as never; // what these handlers read
  const [key = []] = projection.keysOf(event('Written'));
  const written = projection.apply(null, event('Written'), key);
  expect(written).toEqual({ hash: '\\x0102', body: '\\x03', parts: ['\\x04'] });
  expect(projection.apply(written, event('Written'), key)).toBe(written);
  expect(projection.apply(written, event('Touched'), key)).toMatchObject({ body: '\\x0305', parts: ['\\x04'] });
});
