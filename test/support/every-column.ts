import fc from 'fast-check';
import { decimal, t } from '../../src/index.ts';

/** A table with a column of every type. */
export const everyColumn = {
  id: t.text().primaryKey(),
  text: t.text(),
  label: t.text().nullable(),
  integer: t.integer(),
  big: t.bigint(),
  amount: t.decimal(20, 4),
  flag: t.boolean(),
  token: t.uuid(),
  blob: t.bytes({ maxBytes: 100 }),
  day: t.date(),
  at: t.timestamptz(),
  status: t.enum(['Opened', 'Closed']),
  json: t.json(),
  item: t.object({
    name: t.text(),
    price: t.decimal(20, 4).nullable(),
    count: t.bigint(),
    proof: t.bytes().nullable(),
  }),
  items: t.list(t.object({ at: t.timestamptz(), tags: t.list(t.text()), parts: t.list(t.bytes()) })),
  counted: t.integer().default(7),
};

const text = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom('ä', '☂', '👍🏽', '\ud800', '\udc00', '\\', '"', "'", '\n', ' '),
      fc.string({ unit: 'binary', maxLength: 1 }),
    ),
  })
  .map((value) => value.replaceAll('\u0000', ''));
const digits = (most: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: most });
const amount = fc
  .tuple(fc.constantFrom('', '-'), digits(16), digits(4))
  .map(([sign, whole, fraction]) => `${sign}${whole === '' ? '0' : whole}${fraction === '' ? '' : `.${fraction}`}`)
  .chain((value) => fc.constantFrom(value, decimal(value)));
const anyDate = fc.date({ min: new Date('0001-01-02'), max: new Date('9999-12-30'), noInvalidDate: true });
const day = anyDate.map((date) => date.toISOString().slice(0, 10));
const timestamp = fc
  .tuple(
    anyDate,
    fc.constantFrom('', '.5', '.123', '.123456', '.000001', '.120000', '.999999000'),
    fc.constantFrom('Z', 'z', '+00', '+02:00', '-0530', '+14:00'),
  )
  .map(([date, fraction, zone]) => `${date.toISOString().slice(0, 19)}${fraction}${zone}`);
const count = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.maxSafeInteger(),
  fc.constantFrom(-0, 0),
);
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 100 }),
  fc.uint8Array({ maxLength: 5 }).map((value) => Buffer.from(value)),
);
const item = fc.record({ name: text, price: fc.option(amount), count, proof: fc.option(bytes) });

/** What an `evolve` may return for the table, without the key. */
export const anyRow = fc.record({
  text,
  label: fc.option(text),
  integer: fc.oneof(fc.integer({ min: -2_147_483_647, max: 2_147_483_647 }), fc.constant(-0)),
  big: count,
  amount,
  flag: fc.boolean(),
  token: fc.uuid().chain((value) => fc.constantFrom(value, value.toUpperCase())),
  blob: bytes,
  day,
  at: timestamp,
  status: fc.constantFrom('Opened', 'Closed'),
  json: fc
    .jsonValue({ stringUnit: 'binary' })
    .filter((value) => value !== null && !JSON.stringify(value).includes('\\u0000')),
  item,
  items: fc.array(
    fc.record({ at: timestamp, tags: fc.array(text, { maxLength: 3 }), parts: fc.array(bytes, { maxLength: 2 }) }),
    { maxLength: 3 },
  ),
});
