import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RowOrder } from '../../../src/projections/queries/row-query.ts';
import { indexedColumns } from '../../../src/schema/types/filter-types.ts';
import { cursorCodec } from '../../../src/schema/values/cursor.ts';
import { courierDayV1, parcelRow, parcelV1 } from '../parcels.ts';

const indexed = indexedColumns(parcelV1).map(([name]) => name);

const anyOrder: fc.Arbitrary<readonly RowOrder[]> = fc
  .uniqueArray(fc.constantFrom(...indexed), { maxLength: 4 })
  .chain((columns) =>
    fc.tuple(
      ...columns.map((column) =>
        fc.record({
          column: fc.constant(column),
          direction: fc.constantFrom('asc' as const, 'desc' as const),
          nulls: fc.constantFrom('first' as const, 'last' as const),
        }),
      ),
    ),
  );

const decimals = (scale: number) =>
  fc.bigInt({ min: -(10n ** 9n), max: 10n ** 9n }).map((digits) => {
    const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0');
    return `${digits < 0n ? '-' : ''}${text.slice(0, -scale)}.${text.slice(-scale)}`;
  });
const days = fc
  .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  .map((day) => day.toISOString().slice(0, 10));

const anyRow = fc
  .record({
    parcelId: fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\u0000', '')),
    trackingId: fc.uuid(),
    status: fc.constantFrom('Packed', 'Shipped', 'Lost'),
    weight: decimals(3),
    grams: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    pieces: fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 }),
    fragile: fc.boolean(),
    packedOn: days,
    shippedAt: fc.option(
      fc
        .tuple(days, fc.integer({ min: 0, max: 999_999 }))
        .map(([day, micros]) => `${day}T12:00:00.${String(micros).padStart(6, '0')}Z`),
    ),
    courier: fc.option(fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\u0000', ''))),
    insuredFor: fc.option(decimals(2)),
  })
  .map((row) => parcelV1.codec.normalise({ ...parcelRow(), ...row }, [row.parcelId]));

test('a cursor of any row in any order decodes to its exact values', () => {
  fc.assert(
    fc.property(anyRow, anyOrder, (row, orderBy) => {
      const cursors = cursorCodec(parcelV1, orderBy);
      const decoded = cursors.decode(cursors.encode(row), 'after');
      expect(decoded).toEqual([...orderBy.map(({ column }) => row[column]), row.parcelId]);
    }),
  );
});

test('a cursor of another order or list is refused', () => {
  fc.assert(
    fc.property(anyRow, anyOrder, anyOrder, (row, made, used) => {
      fc.pre(JSON.stringify(made) !== JSON.stringify(used));
      const cursor = cursorCodec(parcelV1, made).encode(row);
      expect(() => cursorCodec(parcelV1, used).decode(cursor, 'after')).toThrow("'after' is not a cursor of this list");
      expect(() => cursorCodec(courierDayV1, []).decode(cursor, 'before')).toThrow(
        "'before' is not a cursor of this list",
      );
    }),
  );
});

test('any text sent as a cursor is decoded or refused as bad input, without another error', () => {
  const orderBy = [
    { column: 'shippedAt', direction: 'asc', nulls: 'last' },
    { column: 'weight', direction: 'asc', nulls: 'last' },
  ] as const;
  const cursors = cursorCodec(parcelV1, orderBy);
  const genuine = cursors.encode(parcelV1.codec.normalise({ ...parcelRow(), grams: 1n }, ['a']));
  const [order] = JSON.parse(Buffer.from(genuine, 'base64url').toString('utf8'));
  const forged = fc
    .array(fc.oneof(fc.jsonValue(), fc.string(), fc.constant('2026-01-31T12:00:00Z'), fc.constant('1.5')), {
      maxLength: 4,
    })
    .map((values) => Buffer.from(JSON.stringify([order, ...values])).toString('base64url'));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => Buffer.from(text).toString('base64url')),
        forged,
      ),
      (text) => {
        try {
          expect(cursors.decode(text, 'after')).toHaveLength(3);
        } catch (error) {
          expect(error).toMatchObject({ code: 'BAD_USER_INPUT' });
        }
      },
    ),
    { numRuns: 500 },
  );
});

test.each([
  ['', 'nothing'],
  ['e30', 'an object'],
  ['WyJ4Il0=', 'padding'],
])('%j is not a cursor: %s', (text) => {
  expect(() => cursorCodec(parcelV1, []).decode(text, 'after')).toThrow(
    "'after' is not a cursor of this list in this order",
  );
});

test("a cursor can't hold null for a column that is not nullable", () => {
  const cursors = cursorCodec(parcelV1, []);
  const [order] = JSON.parse(Buffer.from(cursors.encode({ parcelId: 'a' }), 'base64url').toString('utf8'));
  const forged = Buffer.from(JSON.stringify([order, null])).toString('base64url');
  expect(() => cursors.decode(forged, 'after')).toThrow('is not a cursor');
});
