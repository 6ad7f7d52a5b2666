/** What code may throw. Each is made anew: some answer differently when they are asked again. */
export const thrownThings: Readonly<Record<string, () => unknown>> = {
  'a text with NUL': () => new Error('a\u0000b'),
  'half of an emoji': () => new Error('🛒'.slice(0, 1)),
  'ten million characters': () => new Error('x'.repeat(10_000_000)),
  null: () => null,
  undefined: () => undefined,
  'a symbol': () => Symbol('odd'),
  'a bigint': () => 12n,
  'a function': () => () => {},
  'a plain object': () => ({ code: 'ODD', text: 'a\u0000b' }),
  'an object without prototype': () => Object.create(null),
  'an object whose toString throws': () => ({
    toString() {
      throw new Error('no');
    },
  }),
  'a circle': () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    return circle;
  },
  'an error without a readable message': () =>
    Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error('no');
      },
    }),
  'an error whose message is no text': () => Object.assign(new Error('x'), { message: { a: 1n } }),
  'an error whose stack throws': () =>
    Object.defineProperty(new Error('x'), 'stack', {
      get() {
        throw new Error('no');
      },
    }),
  'an error with a member that throws': () =>
    Object.defineProperty(new Error('x'), 'code', {
      enumerable: true,
      get() {
        throw new Error('no');
      },
    }),
  'a frozen error': () => Object.freeze(new Error('frozen')),
  'an error that is its own cause': () => {
    const error = new Error('circular');
    error.cause = error;
    return error;
  },
  'an error with a bad cause': () => new Error('x', { cause: new Error('a\u0000b', { cause: revoked() }) }),
  'several bad errors': () => new AggregateError([revoked(), null], 'several'),
  'a revoked proxy': revoked,
  'a proxy of an error': () =>
    new Proxy(new Error('x'), {
      get() {
        throw new Error('no');
      },
    }),
};

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
