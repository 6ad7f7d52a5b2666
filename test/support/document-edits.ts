import fc from 'fast-check';
import { isDecimal } from '../../src/projections/columns/decimal.ts';

/** A change of a document, described independently of the document: each number selects among the available choices. */
export interface Edit {
  readonly kind: 'put' | 'add' | 'drop' | 'copy' | 'reverse' | 'spread';
  /** The part that is changed. */
  readonly at: number;
  /** For `copy`: what is put there, a part of the same document, which then holds it twice. */
  readonly from: number;
  /** For `put` and `add`. */
  readonly value: unknown;
  readonly key: string;
}

export const anyKey = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'aa',
    'ä',
    'é',
    '10',
    '9',
    '__proto__',
    'constructor',
    'toString',
    'a\ud800',
    'a\ufffd',
    '👍',
    '\uffff',
  ),
  fc.string({ maxLength: 3, unit: 'binary' }).map((key) => key.replaceAll('\u0000', '')),
);

/** Values that JSON keeps, and values that it changes. */
export const anyDocument: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, 1, -0, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, undefined, '', 'text'),
    anyKey,
    fc.constantFrom<unknown>(new Date(0), new Map([[1, 2]]), new Number(-0), Object('boxed'), Symbol('s'), () => 1, {
      toJSON: (key: string) => ({ zz: key, a: [key] }),
    }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.uniqueArray(fc.tuple(anyKey, tie('value')), { maxLength: 4, selector: ([key]) => key }).map(Object.fromEntries),
    fc.dictionary(fc.constantFrom('c', 'b', 'a'), tie('value'), { maxKeys: 3, noNullPrototype: false }),
  ),
})).value;

export const anyEdit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('put', 'add', 'add', 'drop', 'copy', 'copy', 'reverse', 'spread'),
  at: fc.nat(),
  from: fc.nat(),
  value: anyDocument,
  key: anyKey,
});

/** The document after the edit. It shares with the one before everything that the edit does not change. */
export function edited(document: unknown, edit: Edit): unknown {
  const places = placesOf(document);
  const path = places[edit.at % places.length] ?? [];
  const source = valueAt(document, places[edit.from % places.length] ?? []);
  return changedAt(document, path, (value) => change(value, edit, source));
}

/** The text of a value as `jsonb` returns it, computed the simple way: through the text, with each object sorted. */
export function plainly(value: unknown): unknown {
  return sorted(JSON.parse(JSON.stringify(value) ?? 'null'));
}

/** All objects and lists in it, in the order of its text. One that occurs twice is listed twice. Decimals are values. */
export function partsOf(value: unknown): object[] {
  if (typeof value !== 'object' || value === null || isDecimal(value)) return [];
  return [value, ...Object.values(value).flatMap(partsOf)];
}

function change(value: unknown, { kind, value: given, key }: Edit, source: unknown): unknown {
  switch (kind) {
    case 'put':
      return given;
    case 'copy':
      return source;
    case 'add':
      if (Array.isArray(value)) return [...value, given];
      return isObject(value) ? withMember(value, key, given) : [value, given];
    case 'drop':
      if (Array.isArray(value)) return value.slice(1);
      return isObject(value) ? Object.fromEntries(Object.entries(value).slice(1)) : {};
    case 'reverse':
      if (Array.isArray(value)) return value.toReversed();
      return isObject(value) ? Object.fromEntries(Object.entries(value).reverse()) : value;
    case 'spread':
      if (Array.isArray(value)) return [...value];
      return isObject(value) ? { ...value } : value;
  }
}

type Path = readonly string[];

function placesOf(value: unknown, path: Path = []): Path[] {
  if (!isObject(value)) return [path];
  return [path, ...Object.keys(value).flatMap((key) => placesOf(value[key], [...path, key]))];
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((part, key) => (part as Record<string, unknown>)[key], value); // a path of this value
}

function changedAt(value: unknown, path: Path, make: (value: unknown) => unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined || !isObject(value)) return make(value);
  const part = changedAt(value[key], rest, make);
  return Array.isArray(value) ? value.with(Number(key), part) : withMember(value, key, part);
}

/** An assignment to `__proto__` would set no member. */
function withMember(value: object, key: string, part: unknown): object {
  return Object.fromEntries([...Object.entries(value).filter(([name]) => name !== key), [key, part]]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function sorted(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([key, part]) => ({ key, bytes: Buffer.from(key), part: sorted(part) }));
  members.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return Object.fromEntries(members.map(({ key, part }) => [key.toWellFormed(), part]));
}
