import { expect, test } from 'vitest';
import { loggedJson } from '../../src/events/logged-json.ts';
import { InvalidInput } from '../../src/index.ts';

class Money {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
}
class Written extends Money {
  toJSON() {
    return `${this.cents} cents`;
  }
}
const circle: { parts: unknown[] } = { parts: [] };
circle.parts.push({ circle });
let deep: unknown = 1;
for (let level = 0; level < 1001; level++) deep = [deep];
const sparse = [1, 2, 3];
delete sparse[1];

test('keys are in the order of jsonb, undefined members are left out, and -0 is 0', () => {
  const given = { unit: -0, b: 1, a: { z: undefined, y: null }, 10: 1e21, 9: [1, 'x'], ä: 1, ['__proto__']: 1 };
  const text = '{"9":[1,"x"],"10":1e+21,"a":{"y":null},"b":1,"ä":1,"unit":0,"__proto__":1}';
  expect(JSON.stringify(loggedJson(given, 'x'))).toBe(text);
  expect(loggedJson(new Money(1), 'x')).toEqual({ cents: 1 });
});

test.each<readonly [string, unknown, (string | number)[], string]>([
  ['a Date', { at: new Date(0) }, ['at'], 'is a Date'],
  ['a Map', { list: [new Map()] }, ['list', 0], 'is a Map'],
  ['a Set', new Set(), [], 'is a Set'],
  ['a Buffer', { bytes: Buffer.from('x') }, ['bytes'], 'is a Buffer'],
  ['a typed array', { bytes: new Uint8Array(2) }, ['bytes'], 'is a Uint8Array'],
  ['an error', { error: new RangeError('x') }, ['error'], 'is a RangeError'],
  ['an object that writes itself', { money: new Written(1) }, ['money'], 'is a Written'],
  ['NaN', { n: Number.NaN }, ['n'], 'is NaN'],
  ['Infinity', [[-Infinity]], [0, 0], 'is -Infinity'],
  ['undefined in a list', { list: [1, undefined] }, ['list', 1], 'is undefined'],
  ['a hole in a list', { list: sparse }, ['list', 1], 'is undefined'],
  ['a bigint', { a: { b: 1n } }, ['a', 'b'], 'is a bigint'],
  ['a function', { f: () => 1 }, ['f'], 'is a function'],
  ['a symbol', { s: Symbol('s') }, ['s'], 'is a symbol'],
  ['NUL in a text', { a: 'x\u0000' }, ['a'], 'NUL'],
  ['half of a surrogate pair in a name', { 'x\ud83d': 1 }, ['x\ud83d'], 'half of a surrogate pair'],
])('%s is refused with its path', (_, value, path, message) => {
  let refusal: unknown;
  try {
    loggedJson(value, 'The payload');
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(InvalidInput);
  expect(refusal).toMatchObject({
    code: 'INVALID_PAYLOAD',
    issues: [{ path, message: expect.stringContaining(message) }],
  });
});

test('a circle and a depth that PostgreSQL refuses are refused by name', () => {
  expect(() => loggedJson(circle, 'The payload')).toThrow(/is a part of itself/);
  expect(() => loggedJson(deep, 'The payload')).toThrow(/more than 1000 levels deep/);
});
